"""What one way to exchange gradients costs compared with another, and what their sum does to the learning rate."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import grouped
from transect.analysis.parallelism import division
from transect.analysis.scaling import METRIC, TrainGroup
from transect.report.engine.context import Context
from transect.report.topics.ranks.published_series import PUBLISHED, SUMMING, differences
from transect.stats.comparisons import Confidence
from transect.stats.samples import MIN_INTERVAL_VALUES

# Point-to-point messages, and the collective that does the same work.
_PAIRS = (("mpi-sendrecv", "mpi-allreduce"), ("published-sendrecv", "published-allreduce"))
# A path is another one's when the two are so much nearer than each is to a third.
_NEARER = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class PointToPoint:
    """Point-to-point messages compared with the collective, on equal ranks over one network.

    `result` is by samples a second, as a rank that trains nothing leaves the others more of them.
    `published` is the ratio of the published minutes on as many ranks; None where the work is another one.
    """

    group: TrainGroup
    collective: TrainGroup
    result: Contrast
    published: float | None


def point_to_point(context: Context) -> list[PointToPoint]:
    """Return every pair, in order of workload, network and ranks."""

    def place(group: TrainGroup) -> Hashable:
        return group.cell.apart_from("strategy", "options", "batch")

    able = [group for group in context.of("train") if group.cell.ranks > 1 and group.ok and not group.wrong]
    planned = {(each.group.cell, each.base.cell): each for each in context.contrasts.of("rank.point-to-point")}
    found = []
    for members in grouped(able, place).values():
        for way, rival in _PAIRS:
            for direct in (group for group in members if group.cell.strategy == way):
                collective = next((g for g in members if _rivals(g, direct, rival)), None)
                if collective is None:
                    continue
                result = planned.get((direct.cell, collective.cell)) or contrast(
                    direct, collective, context.floors, METRIC, varies="strategy"
                )
                if result is not None:
                    parameters = [record.parameters for group in (direct, collective) for record in group.records]
                    other_work = differences(direct.cell.workload or "", parameters)
                    ratio = published_ratio(direct.cell.workload, direct.cell.ranks)
                    ratio = None if other_work else ratio
                    found.append(PointToPoint(group=direct, collective=collective, result=result, published=ratio))

    def order(pair: PointToPoint) -> tuple[object, ...]:
        cell = pair.group.cell
        return (cell.workload, cell.framework, cell.network or "", cell.nodes, cell.ranks, cell.id)

    return sorted(found, key=order)


def _rivals(group: TrainGroup, direct: TrainGroup, strategy: str) -> bool:
    """Whether it is that strategy with as many samples on each rank that trains."""
    same = group.cell.strategy == strategy and not group.cell.options
    return same and _share(group) == _share(direct) is not None


def _share(group: TrainGroup) -> float | None:
    layout, batch = division(group), group.global_batch
    return batch / (layout.replicas if layout else group.cell.ranks) if batch else None


def published_ratio(workload: str, ranks: int) -> float | None:
    """Return how many times the collective's minutes the other way was published with, or None."""
    minutes = {series.way: series.minutes.get(ranks) for series in PUBLISHED if series.workload == workload}
    direct, collective = minutes.get("Send/Recv"), minutes.get("Allreduce")
    return direct / collective if direct and collective else None


@dataclass(frozen=True, kw_only=True, slots=True)
class SumPath:
    """A training that sums gradients, the mean at the same rate, and the mean at `factor` times the rate.

    `to_scaled` and `to_mean` are the relative distances of the final losses, a value for each seed that all three have.
    """

    summed: TrainGroup
    mean: TrainGroup
    scaled: TrainGroup
    factor: int
    to_scaled: tuple[float, ...]
    to_mean: tuple[float, ...]

    @property
    def same(self) -> bool:
        """Whether in every seed it ends where the mean at the scaled rate does, and not where the mean does."""
        pairs = list(zip(self.to_scaled, self.to_mean, strict=True))
        return bool(pairs) and all(_NEARER * near <= far and far > 0 for near, far in pairs)

    @property
    def differs(self) -> bool:
        """Whether in every seed it ends as far from the scaled rate's end as from the mean's, or farther."""
        pairs = list(zip(self.to_scaled, self.to_mean, strict=True))
        return bool(pairs) and all(near >= far for near, far in pairs)

    @property
    def confidence(self) -> Confidence:
        """With which confidence it is that path."""
        if not (self.same or self.differs):
            return Confidence.INCONCLUSIVE
        many = len(self.to_scaled) >= MIN_INTERVAL_VALUES
        return Confidence.CONFIRMED if many else Confidence.PROVISIONAL


def sum_paths(groups: Iterable[TrainGroup]) -> list[SumPath]:
    """Return every sum over several replicas that has both twins, fewest replicas first."""
    # Trainings that were not compared with the reference, such as late updates, follow no known path.
    able = [g for g in groups if g.ok and not g.wrong and not g.kind.synthetic and g.values("equality_ratio")]
    found = []
    for members in grouped(able, _problem).values():
        factor = _trained_by(members[0])
        plain = [g for g in members if g.cell.reduce == "mean" and g.cell.strategy not in SUMMING]
        mean = _first(g for g in plain if g.cell.learning_rate_rule == "none")
        scaled = _first(g for g in plain if _scaled_by(g) == factor)
        if factor < 2 or mean is None or scaled is None:
            continue
        sums = (g for g in members if g.cell.reduce == "sum" or g.cell.strategy in SUMMING)
        for summed in (g for g in sums if g.cell.learning_rate_rule == "none"):
            found.append(_path(summed, mean, scaled, factor))
    return sorted(found, key=lambda path: (path.factor, path.summed.cell.strategy, path.summed.cell.id))


def _problem(group: TrainGroup) -> Hashable:
    cell = group.cell
    return (
        cell.workload,
        cell.framework,
        cell.precision,
        cell.device,
        cell.input,
        group.global_batch,
        _trained_by(group),
    )


def _trained_by(group: TrainGroup) -> int:
    layout = division(group)
    return layout.replicas if layout is not None else group.cell.ranks


def _scaled_by(group: TrainGroup) -> float | None:
    """How many times the workload's rate the linear rule takes from the first step on, or None."""
    if group.cell.learning_rate_rule != "linear" or not group.global_batch:
        return None
    for record in group.records:
        batch, warm = record.parameters.get("batch"), record.parameters.get("warmup_steps", 0)
        if isinstance(batch, int) and batch > 0 and not warm:
            return group.global_batch / batch
    return None


def _first(groups: Iterable[TrainGroup]) -> TrainGroup | None:
    return min(groups, key=lambda group: (group.cell.strategy, group.cell.id), default=None)


def _path(summed: TrainGroup, mean: TrainGroup, scaled: TrainGroup, factor: int) -> SumPath:
    ends = [group.by_repeat("final_loss") for group in (summed, scaled, mean)]
    seeds: Sequence[int] = sorted(ends[0].keys() & ends[1].keys() & ends[2].keys())

    def distances(reference: dict[int, float]) -> tuple[float, ...]:
        return tuple(abs(ends[0][seed] - reference[seed]) / abs(reference[seed]) for seed in seeds if reference[seed])

    return SumPath(
        summed=summed, mean=mean, scaled=scaled, factor=factor, to_scaled=distances(ends[1]), to_mean=distances(ends[2])
    )
