"""What one way of bringing gradients about costs beside another, and what a sum of them does to the rate."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from transect.analysis.comparisons import Confidence
from transect.analysis.groups import Floors, grouped
from transect.analysis.out_of_core import per_sample
from transect.analysis.parallelism import Beside, beside, division
from transect.analysis.published_series import PUBLISHED, SUMMING, differences
from transect.analysis.scaling import TrainGroup
from transect.analysis.statistics import MIN_INTERVAL_VALUES

# Point-to-point messages, and the collective that does the same work.
_PAIRS = (("mpi-sendrecv", "mpi-allreduce"), ("published-sendrecv", "published-allreduce"))
# A path is another one's when the two are so much nearer than each is to a third.
_NEARER = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class PointToPoint:
    """Messages from rank to rank beside the collective, on equal ranks over one network.

    `result` holds seconds for each sample, as a rank that trains nothing leaves the others more of them.
    `published` is the ratio of the published minutes on as many ranks; None where the work is another one.
    """

    group: TrainGroup
    other: TrainGroup
    result: Beside
    published: float | None

    @property
    def crowded(self) -> bool:
        """Whether either shares cores among its ranks."""
        return self.result.over_subscribed


def point_to_point(groups: Iterable[TrainGroup], floors: Floors) -> list[PointToPoint]:
    """Return every pair, in order of workload, network and ranks."""

    def place(group: TrainGroup) -> Hashable:
        return group.cell.apart_from("strategy", "options", "batch")

    able = [group for group in groups if group.cell.ranks > 1 and group.ok and not group.wrong]
    found = []
    for members in grouped(able, place).values():
        for way, rival in _PAIRS:
            for own in (group for group in members if group.cell.strategy == way):
                other = next((g for g in members if _rivals(g, own, rival)), None)
                result = beside(own, other, floors, of=per_sample) if other else None
                if other is not None and result is not None:
                    told = [record.parameters for one in (own, other) for record in one.records]
                    other_work = differences(own.cell.workload or "", told)
                    ratio = published_ratio(own.cell.workload, own.cell.ranks)
                    ratio = None if other_work else ratio
                    found.append(PointToPoint(group=own, other=other, result=result, published=ratio))

    def order(one: PointToPoint) -> tuple[object, ...]:
        cell = one.group.cell
        return (cell.workload, cell.framework, cell.network or "", cell.nodes, cell.ranks, cell.id)

    return sorted(found, key=order)


def _rivals(group: TrainGroup, own: TrainGroup, strategy: str) -> bool:
    """Whether it is that strategy with as many samples on each rank that trains."""
    same = group.cell.strategy == strategy and not group.cell.options
    return same and _share(group) == _share(own) is not None


def _share(group: TrainGroup) -> float | None:
    told, batch = division(group), group.global_batch
    return batch / (told.replicas if told else group.cell.ranks) if batch else None


def published_ratio(workload: str, ranks: int) -> float | None:
    """Return how many times the collective's minutes the other way was published with, or None."""
    minutes = {one.way: one.minutes.get(ranks) for one in PUBLISHED if one.workload == workload}
    ours, other = minutes.get("Send/Recv"), minutes.get("Allreduce")
    return ours / other if ours and other else None


@dataclass(frozen=True, kw_only=True, slots=True)
class SumPath:
    """A training that sums, beside the mean at the same rate and the mean at `factor` times the rate.

    `to_scaled` and `to_mean` are the relative distances of the final losses, a value for each seed that
    all three have.
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
    def other(self) -> bool:
        """Whether in every seed it ends as far from the scaled rate's end as from the mean's, or farther."""
        pairs = list(zip(self.to_scaled, self.to_mean, strict=True))
        return bool(pairs) and all(near >= far for near, far in pairs)

    @property
    def confidence(self) -> Confidence:
        """With which confidence it is that path."""
        if not (self.same or self.other):
            return Confidence.INCONCLUSIVE
        many = len(self.to_scaled) >= MIN_INTERVAL_VALUES
        return Confidence.CONFIRMED if many else Confidence.PROVISIONAL


def sum_paths(groups: Iterable[TrainGroup]) -> list[SumPath]:
    """Return every sum over several replicas that has both twins, fewest replicas first."""
    # What no reference was held to, such as updates that come late, is no path of anything.
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
    return sorted(found, key=lambda one: (one.factor, one.summed.cell.strategy, one.summed.cell.id))


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
    told = division(group)
    return told.replicas if told is not None else group.cell.ranks


def _scaled_by(group: TrainGroup) -> float | None:
    """How many times the workload's rate the linear rule takes from the first step on, or None."""
    if group.cell.learning_rate_rule != "linear" or not group.global_batch:
        return None
    for record in group.records:
        own, warm = record.parameters.get("batch"), record.parameters.get("warmup_steps", 0)
        if isinstance(own, int) and own > 0 and not warm:
            return group.global_batch / own
    return None


def _first(groups: Iterable[TrainGroup]) -> TrainGroup | None:
    return min(groups, key=lambda group: (group.cell.strategy, group.cell.id), default=None)


def _path(summed: TrainGroup, mean: TrainGroup, scaled: TrainGroup, factor: int) -> SumPath:
    ends = [group.by_repeat("final_loss") for group in (summed, scaled, mean)]
    seeds: Sequence[int] = sorted(ends[0].keys() & ends[1].keys() & ends[2].keys())

    def distances(other: dict[int, float]) -> tuple[float, ...]:
        return tuple(abs(ends[0][seed] - other[seed]) / abs(other[seed]) for seed in seeds if other[seed])

    return SumPath(
        summed=summed, mean=mean, scaled=scaled, factor=factor, to_scaled=distances(ends[1]), to_mean=distances(ends[2])
    )
