"""What the network allows: an alpha-beta model from ping-pong, and the least time of an all-reduce.

The model is that of Hockney, "The communication challenge for MPP", Parallel Computing 20(3), 1994:
a message of n bytes takes t(n) = alpha + n / beta. The lower bound of an all-reduce is that of Chan,
Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience",
Concurrency and Computation 19(13), 2007; see also Thakur, Rabenseifner and Gropp,
"Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import group_records
from transect.analysis.scaling import TrainGroup
from transect.analysis.statistics import Summary, summarise
from transect.domain.cell import Cell

__all__ = [
    "BOUND_NAME", "POOR", "AllreduceBound", "AlphaBeta", "Communication", "NetworkFit",
    "allreduce_bound", "communications", "fit_alpha_beta", "fit_for", "network_fits",
]  # fmt: skip

BENCHMARK = "network-probe"
BOUND_NAME = "alpha-beta lower bound"
# A relative scatter about the line above which the line does not describe the network.
POOR = 0.2
_TOLERANCE = 1e-10

Array = np.ndarray[Any, np.dtype[np.float64]]

_LABEL = re.compile(r"(?:^|\s)pingpong-(\d{1,12})_median$")


@dataclass(frozen=True, kw_only=True, slots=True)
class AlphaBeta:
    """The model t(n) = alpha + n / beta of `points` median one-way times.

    `alpha_s` in s and `beta` in B/s, each with its standard error. `residual` is the root of the
    mean square of log(t / model), corrected for the two parameters: a relative deviation when it is
    small. `worst` is the t / model farthest from 1, at `worst_size` bytes.
    """

    alpha_s: float
    alpha_error_s: float
    beta: float
    beta_error: float
    residual: float
    worst: float
    worst_size: int
    points: int

    @property
    def poor(self) -> bool:
        """Whether one line does not describe the network."""
        return self.residual > POOR

    def time(self, size: float) -> float:
        """Return the model's one-way time in s of `size` bytes."""
        return self.alpha_s + size / self.beta

    @property
    def remark(self) -> str:
        """Say why the fit is poor; empty when it is not."""
        if not self.poor:
            return ""
        return (
            f"poor fit: {self.worst_size} B take {self.worst:.2g} times the line's time; a change "
            "of protocol (eager, rendezvous) or a link that lets bursts through bends the line"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkFit:
    """The model of one probe cell. `medians` are its points: (bytes, one-way time in s)."""

    cell: Cell
    model: AlphaBeta
    medians: tuple[tuple[int, float], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class AllreduceBound:
    """The alpha-beta lower bound of an all-reduce: `time_s` is the larger of the two parts in s.

    `kind` is `latency` or `bandwidth`, the part that sets it.
    """

    time_s: float
    latency_s: float
    bandwidth_s: float
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Communication:
    """Measured communication of one training group beside what its network allows.

    `time` summarises `values`, the repeats' median seconds per step. `missing` says why there is no bound.
    """

    group: TrainGroup
    time: Summary
    values: tuple[float, ...]
    share: float | None
    gradient_bytes: float | None
    fit: NetworkFit | None
    bound: AllreduceBound | None
    missing: str

    @property
    def ratio(self) -> float | None:
        """How many times the bound was taken, or None without a bound."""
        return self.time.median / self.bound.time_s if self.bound else None


def fit_alpha_beta(points: Sequence[tuple[float, float]]) -> AlphaBeta | None:
    """Fit (bytes, s) by least squares of log t: an error counts by its share of the time.

    For small errors that is least squares with weights 1 / t^2. Unweighted, the largest messages
    would decide alone; with these weights and large errors, a line far below its points would count
    as no more than 100 % off. Levenberg-Marquardt in (log alpha, log 1/beta); standard
    errors are those of the linearised problem, from the scatter about the line. None for fewer than
    three points, one size, or a time or size that is not positive and finite (no bytes are a size).
    """
    sizes = {size for size, _ in points}
    wrong = any(not (0 < time < np.inf and 0 <= size < np.inf) for size, time in points)
    if len(points) < 3 or len(sizes) < 2 or wrong:
        return None
    size, time = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    start = np.log([time.min(), (time / np.maximum(size, 1)).min()])
    fit = least_squares(_excess, start, jac=_slopes, method="lm", args=(size, time),
                        ftol=_TOLERANCE, xtol=_TOLERANCE, gtol=_TOLERANCE)  # fmt: skip
    slopes = _slopes(fit.x, size, time)
    variance = float(fit.fun @ fit.fun) / (len(points) - 2)
    errors = np.sqrt(variance * np.diag(np.linalg.pinv(slopes.T @ slopes)))
    alpha, slope = (float(value) for value in np.exp(fit.x))
    worst = int(np.abs(fit.fun).argmax())
    return AlphaBeta(
        alpha_s=alpha,
        alpha_error_s=alpha * float(errors[0]),
        beta=1 / slope,
        beta_error=float(errors[1]) / slope,
        residual=float(np.sqrt(variance)),
        worst=float(np.exp(-fit.fun[worst])),
        worst_size=int(size[worst]),
        points=len(points),
    )


def _parts(logarithms: Array, size: Array) -> Array:
    """Return latency and transfer time of the model, shape (points, 2), in s."""
    latency, per_byte = np.exp(logarithms)
    return np.column_stack([np.full_like(size, latency), size * per_byte])


def _excess(logarithms: Array, size: Array, time: Array) -> Array:
    """Return log(model / t), shape (points,)."""
    return np.asarray(np.log(_parts(logarithms, size).sum(axis=1) / time), dtype=float)


def _slopes(logarithms: Array, size: Array, time: Array) -> Array:
    """Return the derivatives of `_excess`, shape (points, 2)."""
    parts = _parts(logarithms, size)
    return np.asarray(parts / parts.sum(axis=1)[:, None], dtype=float)


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
    return AllreduceBound(
        time_s=max(latency_s, bandwidth_s),
        latency_s=latency_s,
        bandwidth_s=bandwidth_s,
        kind="latency" if latency_s >= bandwidth_s else "bandwidth",
    )


def network_fits(records: Iterable[AnyRecord]) -> list[NetworkFit]:
    """Fit every ok network probe; repeats of a cell are pooled. In order of the cells."""
    probes = [record for record in records if record.cell.get("benchmark") == BENCHMARK]
    fits = []
    for group in group_records(probes, "bench"):
        points = tuple(sorted(point for record in group.ok for point in _medians(record)))
        model = fit_alpha_beta(points)
        if model is not None:
            fits.append(NetworkFit(cell=group.cell, model=model, medians=points))
    return sorted(fits, key=lambda fit: (fit.cell.nodes, fit.cell.network or "", fit.cell.id))


def _medians(record: AnyRecord) -> list[tuple[int, float]]:
    return [
        (int(match[1]), number.value)
        for number in record.metrics
        if number.name == "message_time" and (match := _LABEL.search(number.label or ""))
    ]


def fit_for(cell: Cell, fits: Iterable[NetworkFit]) -> NetworkFit | None:
    """Return the fit of the network that a training cell's messages cross, or None.

    Across nodes: a probe of the same network on two nodes or more, on as many nodes if there is
    one. Within a node the network plays no part: any probe on one node, of the same name first.
    """
    inside = cell.nodes == 1
    able = [
        fit
        for fit in fits
        if (fit.cell.nodes == 1) == inside and (inside or fit.cell.network == cell.network)
    ]
    return min(
        able,
        key=lambda fit: (
            fit.cell.network != cell.network,
            abs(fit.cell.nodes - cell.nodes),
            abs(fit.cell.ranks_per_node - cell.ranks_per_node),
            fit.cell.id,
        ),
        default=None,
    )


def communications(groups: Iterable[TrainGroup], fits: Sequence[NetworkFit]) -> list[Communication]:
    """Hold each right group of several ranks against the bound, in order of the groups.

    Across nodes the bound counts one rank per node: messages within a node are free in it. It is
    that of an all-reduce for every strategy, also for one that does not use any: all of them do
    an all-reduce's work.
    """
    rows = []
    fit_of: dict[tuple[str | None, int, int], NetworkFit | None] = {}
    for group in groups:
        # What hides behind computing is under way all the same.
        names = ("communication_total_time", "communication_time")
        values = next((told for name in names if (told := group.values(name))), [])
        time = summarise(values)
        if group.cell.ranks < 2 or group.wrong or time is None:
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
                group=group, time=time, values=tuple(values), share=share.median if share else None,
                gradient_bytes=size.median if size else None, fit=fit, bound=bound,
                missing=missing,
            )
        )  # fmt: skip
    return rows
