"""What distribution costs: a step on p ranks against the step of one, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from transect.analysis.groups import Group
from transect.analysis.scaling import Neighbours, ScalingKind, TrainGroup, crosses_none, scaling_kind
from transect.domain.metrics import Direction
from transect.stats.comparisons import Comparison, Verdict, compare
from transect.stats.estimates import Estimate, ratio_of
from transect.stats.noise import middle
from transect.stats.samples import NoiseFloor

STEP = "step_time"
_RATE = "samples_per_second"
_PARTS = ("communication", "compute", "input")


@dataclass(frozen=True, kw_only=True)
class DistributionCost:
    """A group's step compared with the least that its base would need with as many ranks.

    `ideal_s` is the base's step over the added ranks (strong scaling) or the base's step itself (weak). `cost` is the
    ratio that `comparison` goes by, less 1. `waited`, `computing` and `input` are what the group's parts take beyond
    the base's, scaled alike, over `ideal_s`; None where a library does not tell. They are medians of their own and need
    not add up: `other` is the rest, with whatever is not told. `floor` is that of the step time.
    """

    group: TrainGroup
    base: TrainGroup
    scaling: ScalingKind
    ideal_s: float
    step_s: float
    cost: float
    waited: float | None
    computing: float | None
    input: float | None
    floor: NoiseFloor | None

    @cached_property
    def comparison(self) -> Comparison | None:
        """The comparison seen from the group: worse means that the cost is real.

        None when the group is over-subscribed: then the cost is a number without a claim. Made when
        it is asked for: of thousands, few are.
        """
        if self.group.over_subscribed:
            return None
        share = self.group.cell.ranks if self.scaling is ScalingKind.STRONG else 1
        return compare(
            self.group.values(STEP),
            [value / share for value in self.base.values(STEP)],
            direction=Direction.LOWER,
            floor=self.floor,
        )

    @property
    def other(self) -> float:
        """The part of the cost that no known part explains."""
        return self.cost - sum(part or 0.0 for part in (self.waited, self.computing, self.input))

    @property
    def parts_known(self) -> bool:
        """Whether the parts of a step are known on both sides."""
        return None not in (self.waited, self.computing, self.input)

    @property
    def real(self) -> bool:
        """Whether group and base differ by more than the noise."""
        return self.comparison is not None and self.comparison.verdict is not Verdict.SAME


def distribution_costs(groups: Sequence[TrainGroup], floor: NoiseFloor | None) -> list[DistributionCost]:
    """Return the cost of every distributed group that has a base, in order of the groups.

    The base is the same framework's `single`, or else the same strategy on one rank, with the same
    kind of training, threads and device, within its cores and right. Groups on one rank count: a
    strategy may cost without any message. `floor` is that of the step time.
    """
    usable = [group for group in groups if not group.wrong and group.values(STEP)]
    near = Neighbours(group for group in usable if group.cell.ranks == 1)
    costs = []
    for group in usable:
        base = _base(group, near.of(group))
        if base is not None:
            costs.append(_cost(group, base, floor))
    return costs


def _base(group: TrainGroup, alone: Iterable[TrainGroup]) -> TrainGroup | None:
    """Choose among neighbours on one rank."""
    cell = group.cell
    near = [
        neighbour
        for neighbour in alone
        if neighbour is not group
        and not neighbour.over_subscribed
        and (
            neighbour.cell.strategy == "single" != cell.strategy
            or (neighbour.cell.strategy == cell.strategy and cell.ranks > 1)
        )
        and (neighbour.cell.network == cell.network or crosses_none(neighbour))
        and scaling_kind(group, neighbour) is not ScalingKind.OTHER
    ]
    return min(
        near,
        key=lambda neighbour: (
            scaling_kind(group, neighbour) is not ScalingKind.STRONG,
            neighbour.cell.strategy != "single",
            neighbour.cell.network != cell.network,
            neighbour.cell.id,
        ),
        default=None,
    )


def _cost(group: TrainGroup, base: TrainGroup, floor: NoiseFloor | None) -> DistributionCost:
    scaling = scaling_kind(group, base)
    share = group.cell.ranks if scaling is ScalingKind.STRONG else 1
    step_s, base_s = _median(group, STEP), _median(base, STEP)
    ratio = ratio_of(group.values(STEP), [value / share for value in base.values(STEP)])
    assert step_s is not None and base_s is not None
    ideal_s = base_s / share
    extra: dict[str, float | None] = {}
    for part in _PARTS:
        after, before = _median(group, f"{part}_time"), _median(base, f"{part}_time")
        known = after is not None and before is not None and ideal_s > 0
        extra[part] = ((after or 0.0) - (before or 0.0) / share) / ideal_s if known else None
    return DistributionCost(
        group=group,
        base=base,
        scaling=scaling,
        ideal_s=ideal_s,
        step_s=step_s,
        cost=ratio.value - 1 if ratio is not None else 0.0,
        waited=extra["communication"],
        computing=extra["compute"],
        input=extra["input"],
        floor=floor,
    )


def _median(group: Group, name: str) -> float | None:
    summary = group.summary(name)
    return summary.median if summary else None


@dataclass(frozen=True, kw_only=True)
class RelativeSpeed:
    """One framework on one rank compared with the fastest; `floor` is that of samples/s."""

    group: TrainGroup
    best: TrainGroup
    floor: NoiseFloor | None

    @cached_property
    def ratio(self) -> Estimate | None:
        """Its rate over the fastest's, as the comparison has it; None for the fastest itself."""
        comparison = self.comparison
        return comparison.ratio.inverse if comparison is not None and comparison.ratio is not None else None

    @cached_property
    def comparison(self) -> Comparison | None:
        """The comparison seen from the fastest; None for the fastest itself."""
        if self.group is self.best:
            return None
        return compare(self.best.values(_RATE), self.group.values(_RATE), direction=Direction.HIGHER, floor=self.floor)


def relative_speeds(groups: Sequence[TrainGroup], floor: NoiseFloor | None) -> list[RelativeSpeed]:
    """Compare the speeds of strategy `single`, fastest first; `floor` is that of samples/s.

    The groups have to be of one kind, device, number of threads and batch. Wrong and over-subscribed ones take no part.
    """
    able = [
        group
        for group in groups
        if group.cell.strategy == "single"
        and not group.wrong
        and not group.over_subscribed
        and min(group.values(_RATE), default=0.0) > 0
    ]
    able.sort(key=lambda group: (-middle(group.values(_RATE)), group.cell.id))
    return [RelativeSpeed(group=group, best=able[0], floor=floor) for group in able]
