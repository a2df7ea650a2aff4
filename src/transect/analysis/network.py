"""What the network allows: an alpha-beta model from ping-pong, and the least time of an all-reduce.

The model is that of Hockney, "The communication challenge for MPP", Parallel Computing 20(3), 1994:
a message of n bytes takes t(n) = alpha + n / beta. The lower bound of an all-reduce is that of Chan,
Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience",
Concurrency and Computation 19(13), 2007; see also Thakur, Rabenseifner and Gropp,
"Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import group_records
from transect.analysis.parallelism import divided
from transect.analysis.scaling import TrainGroup
from transect.domain.cell import Cell
from transect.simulation.networks import AlphaBeta, fit_alpha_beta
from transect.stats.samples import Summary, summarise

BENCHMARK = "network-probe"
BOUND_NAME = "alpha-beta lower bound"
# What the probe calls the median of half a round trip.
PINGPONG = "pingpong_median"


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkFit:
    """The model of one probe cell. `medians` are its points: (bytes, one-way time in s)."""

    cell: Cell
    model: AlphaBeta
    medians: tuple[tuple[int, float], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class AllreduceBound:
    """The alpha-beta lower bound of an all-reduce, in s, and the part that sets it: `latency` or `bandwidth`."""

    time_s: float
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Communication:
    """Measured communication of one training group, and the bound of its network.

    `time` summarises the repeats' median seconds per step. `missing` says why there is no bound.
    """

    group: TrainGroup
    time: Summary
    share: float | None
    gradient_bytes: float | None
    fit: NetworkFit | None
    bound: AllreduceBound | None
    missing: str

    @property
    def ratio(self) -> float | None:
        """How many times the bound was taken, or None without a bound."""
        return self.time.median / self.bound.time_s if self.bound else None


def allreduce_bound(model: AlphaBeta, size: float, ranks: int) -> AllreduceBound:
    """Least time in s in which `ranks` processes can all-reduce `size` bytes, by the model.

    max(ceil(log2 p) alpha, 2 (p - 1) / p n / beta), the lower bounds of Chan et al. for ranks that
    send one message at a time: what a rank has in the end depends on every other one, which takes
    ceil(log2 p) messages in a row, and 2 (p - 1) n bytes have to be sent in all, shared by p ranks
    at best. The parts are not added: nothing says that both are paid one after the other. Their
    sum with twice the first part is the time of one algorithm (Rabenseifner's) and no bound; short
    messages are faster. Additions count as free. Raises ZeroDivisionError for no ranks.
    """
    latency_s = max(0, ranks - 1).bit_length() * model.alpha_s
    bandwidth_s = 2 * (ranks - 1) / ranks * size / model.beta
    kind = "latency" if latency_s >= bandwidth_s else "bandwidth"
    return AllreduceBound(time_s=max(latency_s, bandwidth_s), kind=kind)


def network_fits(records: Iterable[AnyRecord]) -> list[NetworkFit]:
    """Fit every ok network probe; repeats of a cell are pooled. In order of the cells."""
    probes = [record for record in records if record.point.get("benchmark") == BENCHMARK]
    fits = []
    for group in group_records(probes, "bench"):
        points = tuple(sorted(point for record in group.ok for point in _medians(record)))
        model = fit_alpha_beta(points)
        if model is not None:
            fits.append(NetworkFit(cell=group.cell, model=model, medians=points))
    return sorted(fits, key=lambda fit: (fit.cell.nodes, fit.cell.network or "", fit.cell.id))


def _medians(record: AnyRecord) -> list[tuple[int, float]]:
    return [
        (number.log.size, number.value)
        for number in record.metrics
        if number.log is not None and number.log.series == PINGPONG and number.log.size is not None
    ]


def fit_for(cell: Cell, fits: Iterable[NetworkFit]) -> NetworkFit | None:
    """Return the fit of the network that a training cell's messages cross, or None.

    Across nodes: a probe of the same network on two nodes or more, on as many nodes if there is
    one. Within a node the network plays no part: any probe on one node, of the same name first.
    """
    inside = cell.nodes == 1
    able = [fit for fit in fits if (fit.cell.nodes == 1) == inside and (inside or fit.cell.network == cell.network)]
    return min(
        able,
        key=lambda fit: (
            fit.cell.container != cell.container,
            fit.cell.network != cell.network,
            abs(fit.cell.nodes - cell.nodes),
            abs(fit.cell.ranks_per_node - cell.ranks_per_node),
            fit.cell.id,
        ),
        default=None,
    )


def communications(groups: Iterable[TrainGroup], fits: Sequence[NetworkFit]) -> list[Communication]:
    """Compare each right group of several ranks with the bound, in order of the groups.

    Across nodes the bound counts one rank per node: messages within a node are free in it. It is
    that of an all-reduce for every strategy whose ranks share the data alone, also for one that does
    not use any: all of them do an all-reduce's work. Ranks that share a model do not, and are left out.
    """
    rows = []
    fit_of: dict[tuple[str | None, int, int], NetworkFit | None] = {}
    for group in groups:
        # What hides behind computing is under way all the same.
        names = ("communication_total_time", "communication_time")
        time = summarise(next((known for name in names if (known := group.counted(name))), []))
        if group.cell.ranks < 2 or group.wrong or time is None or divided([group]):
            continue
        share, size = group.summary("communication_share"), group.summary("gradient_bytes")
        place = (group.cell.network, group.cell.nodes, group.cell.ranks_per_node)
        if place not in fit_of:
            fit_of[place] = fit_for(group.cell, fits)
        fit = fit_of[place]
        ranks = group.cell.nodes if group.cell.nodes > 1 else group.cell.ranks
        bound, missing = None, ""
        if fit is None:
            missing = "no probe of its network"
        elif size is None:
            missing = "its gradient's size is not known"
        else:
            bound = allreduce_bound(fit.model, size.median, ranks)
        rows.append(
            Communication(
                group=group,
                time=time,
                share=share.median if share else None,
                gradient_bytes=size.median if size else None,
                fit=fit,
                bound=bound,
                missing=missing,
            )
        )
    return rows
