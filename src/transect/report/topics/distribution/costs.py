"""What distribution costs: a step on p ranks against the step of one, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from transect.analysis.contrasts import contrast
from transect.analysis.groups import Group
from transect.analysis.kinds import main_kind
from transect.analysis.labels import people_name
from transect.analysis.quality import TIME, may_be_ranked
from transect.analysis.scaling import METRIC, Neighbours, ScalingKind, TrainGroup, crosses_none, scaling_kind
from transect.report.engine.blocks import Chip, Column, Part, digits, note, table, words
from transect.report.engine.columns import NOT_TOLD, RANKS, labelled
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import basis_words
from transect.report.engine.finding import Finding, joined, limited_confidence, median
from transect.report.engine.text import factor, quantity, scale_for, tenths
from transect.report.topics.training.facts import step_shares
from transect.stats.comparisons import Confidence

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


def distribution_findings(context: Context) -> list[Finding]:
    """Per workload: the cost of the best distributed cell."""
    findings: list[Finding] = []
    for workload in context.workloads("train"):
        groups = context.of("train", workload)
        main = main_kind(groups)
        groups = [g for g in groups if g.kind == main and g.ok and not g.wrong]
        findings += _cost_finding(context, workload, groups)
    return findings


def split_text(cost: DistributionCost) -> str:
    """Write what is lost beside the ideal and in what: the numbers that the table shows, in its unit."""
    scale = scale_for([cost.step_s], "s")
    parts = [(value, what) for part, what in LOST.items() if (value := cost.parts[part]) is not None]
    parts.append((cost.other_s, "not explained" if len(parts) == len(LOST) else "not told"))
    # As exact as the step itself is written.
    written = [
        (f"{value / scale.factor:+.{0 if cost.step_s >= 30 * scale.factor else 1}f}", what) for value, what in parts
    ]
    return ", ".join(f"{value.replace('-', '−')} {what}" for value, what in written if value.strip("+-0."))


def _cost_finding(context: Context, workload: str, groups: list[TrainGroup]) -> list[Finding]:
    every = [cost for cost in distribution_costs(groups) if cost.group.cell.ranks > 1]
    able = [cost for cost in every if not cost.group.over_subscribed]
    best = min(able, key=lambda cost: soonest_first(cost.group), default=None)
    if best is None:
        return []
    planned = {(c.group.cell, c.base.cell): c for c in context.contrasts.of("distribution", workload)}
    beside = planned.get((best.group.cell, best.base.cell)) or contrast(
        best.group, best.base, context.floors, STEP, varies="ranks"
    )
    if beside is None:
        return []
    cell, share = best.group.cell, best.group.cell.ranks if best.scaling is ScalingKind.STRONG else 1
    # What the step is to what it would ideally be: the interval that decides, over the ranks that share the work.
    times = [share * end for end in (beside.cost.value, beside.cost.low, beside.cost.high)]
    if beside.metric == METRIC:
        times = [end * cell.ranks / share for end in (beside.cost.value, beside.cost.low, beside.cost.high)]
    need = f"{people_name(cell, [best.base.cell], always=('ranks',))} needs {quantity(best.step_s, 's')} a step"
    ideal = f"ideal {quantity(best.ideal_s, 's')}"
    interval = f"{factor(times[0])} times the ideal ({beside.cost.word} {factor(times[1])} to {factor(times[2])})"
    confidence = Confidence.INCONCLUSIVE
    decides = beside.decision is not None and not beside.barred
    if decides and times[1] > 1:
        claim = f"{need}, {ideal}: {split_text(best)}"
        confidence = Confidence.CONFIRMED if beside.sound else Confidence.PROVISIONAL
    elif decides and times[2] < 1:
        claim = f"{need}, less than the {ideal}: look at the base before trusting it"
    else:
        claim = f"{need}, {ideal}: whether that is more than the ideal is not known"
    evidence = [interval, basis_words(beside), beside.reason]
    evidence.append(f"best by {'time to quality' if may_be_ranked(best.group) else 'samples/s'}")
    if len(every) > len(able):
        evidence.append(f"{len(every) - len(able)} with more ranks than cores left out")
    return [
        Finding(
            subject=workload,
            claim=claim + ".",
            short=claim,
            named=True,
            evidence=joined(*evidence),
            confidence=limited_confidence(confidence, best.group, best.base),
            kind="distribution",
            contrasts=(beside,),
            groups=(best.group, best.base),
        )
    ]


def cost_blocks(workload: str, groups: list[TrainGroup], *, folded: bool = False) -> Iterator[Part]:
    """List the cost of every distributed group of one kind; nothing without a base."""
    kind = main_kind(groups)
    every = distribution_costs(groups)
    if not every:
        if not folded and any(group.cell.strategy != "single" for group in groups):
            yield note("No distributed cell has a base on one rank: what distribution costs is not known.")
        return
    every.sort(key=lambda cost: (cost.group.cell.ranks == 1, cost.group.cell.ranks, cost.cost, cost.group.cell.id))
    scale = scale_for([cost.step_s for cost in every], "s")

    def lost(part: str) -> Callable[[DistributionCost], float | None]:
        return lambda cost: cost.parts[part]

    columns: list[Column[DistributionCost]] = [
        labelled(groups, "Framework and strategy", never=("ranks",)),
        RANKS,
        words("", _mark),
        words("Scaling", lambda cost: cost.scaling.value),
        digits(f"Step ({scale.unit})", lambda cost: cost.step_s, scale),
        digits(f"Ideal ({scale.unit})", lambda cost: cost.ideal_s, scale),
        digits("Cost", lambda cost: cost.cost, tenths),
        *(digits(f"{what.capitalize()} ({scale.unit})", lost(part), scale, NOT_TOLD) for part, what in LOST.items()),
        digits(f"Other ({scale.unit})", lambda cost: cost.other_s, scale),
        words("Base", lambda cost: cost.base.cell.strategy),
    ]
    yield table(
        every,
        columns,
        caption=f"{workload}: what distribution costs; medians",
        folded=f"What distribution costs with {kind.words}" if folded else "",
        fold_title=f"What distribution costs in {workload}, and on one rank",
    )


def _mark(cost: DistributionCost) -> Chip | None:
    if cost.group.over_subscribed:
        return Chip("over-subscribed", "warn")
    if cost.cost < 0:
        return Chip("superlinear", "warn")
    return Chip("disturbed", "warn") if cost.group.disturbed or cost.base.disturbed else None
