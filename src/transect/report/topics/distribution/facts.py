"""What distribution costs: a step on p ranks against the step of one, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from transect.analysis.groups import Group
from transect.analysis.quality import TIME, may_be_ranked
from transect.analysis.scaling import METRIC, Neighbours, ScalingKind, TrainGroup, crosses_none, scaling_kind
from transect.report.engine.finding import median
from transect.report.topics.training.facts import step_shares

STEP = "step_time"
# What is lost, and the part of a step in which it is.
LOST = {"communication": "waiting", "compute": "slower computing", "input": "input"}


@dataclass(frozen=True, kw_only=True)
class DistributionCost:
    """A group's median step beside the least that its base would need with as many ranks, in s.

    `ideal_s` is the base's step over the added ranks (strong scaling) or the base's step itself (weak). `parts` are what
    the group's parts, by `step_shares`, take beyond the base's, scaled alike; None where a library does not tell.
    """

    group: TrainGroup
    base: TrainGroup
    scaling: ScalingKind
    ideal_s: float
    step_s: float
    parts: Mapping[str, float | None]

    @property
    def lost_s(self) -> float:
        """What the step takes beyond the ideal."""
        return self.step_s - self.ideal_s

    @property
    def cost(self) -> float:
        """What is lost, as a share of the ideal."""
        return self.lost_s / self.ideal_s if self.ideal_s else 0.0

    @property
    def other_s(self) -> float:
        """The part of what is lost that no known part explains; medians of parts need not add up."""
        other = self.lost_s - sum(part or 0.0 for part in self.parts.values())
        # What rounding leaves is nothing.
        return other if abs(other) > 1e-9 * self.step_s else 0.0

    @property
    def drawn_s(self) -> dict[str, float]:
        """What is lost by part, as a bar shows it: what a part gains is taken from all that lose, so the ends agree."""
        lost = {part: max(0.0, value or 0.0) for part, value in (*self.parts.items(), ("other", self.other_s))}
        whole = sum(lost.values())
        return {part: value * max(0.0, self.lost_s) / whole if whole else 0.0 for part, value in lost.items()}


def distribution_costs(groups: Sequence[TrainGroup]) -> list[DistributionCost]:
    """Return the cost of every distributed group that has a base, in order of the groups.

    The base is the same framework's `single`, or else the same strategy on one rank, with the same
    kind of training, threads and device, within its cores and right. Groups on one rank count: a
    strategy may cost without any message.
    """
    usable = [group for group in groups if not group.wrong and group.values(STEP)]
    near = Neighbours(group for group in usable if group.cell.ranks == 1)
    pairs = [(group, _base(group, near.of(group))) for group in usable]
    return [_cost(group, base) for group, base in pairs if base is not None]


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


def _cost(group: TrainGroup, base: TrainGroup) -> DistributionCost:
    scaling = scaling_kind(group, base)
    share = group.cell.ranks if scaling is ScalingKind.STRONG else 1
    step_s, base_s = median(group, STEP) or 0.0, median(base, STEP) or 0.0
    after, before = step_shares(group), step_shares(base)
    return DistributionCost(
        group=group,
        base=base,
        scaling=scaling,
        ideal_s=base_s / share,
        step_s=step_s,
        parts={
            part: after[part] * step_s - before[part] * base_s / share if part in after and part in before else None
            for part in LOST
        },
    )


def soonest_first(group: Group) -> tuple[bool, float, str]:
    """Sort by time to quality, and those that have none that counts by speed, after all others."""
    reached = may_be_ranked(group)
    value = median(group, TIME) if reached else -(median(group, METRIC) or 0.0)
    return not reached, value or 0.0, group.cell.id
