"""Findings on distribution: what it costs, and how much communication hides behind computing."""

from __future__ import annotations

from collections.abc import Mapping

from transect.analysis.groups import Group
from transect.analysis.kinds import main_kind
from transect.analysis.labels import group_labels
from transect.analysis.quality import TIME, may_be_ranked
from transect.analysis.scaling import METRIC, ScalingKind, TrainGroup
from transect.analysis.side_by_side import under
from transect.domain.cell import Cell
from transect.report.engine.context import Context
from transect.report.engine.deciding import same_within
from transect.report.engine.finding import Finding, floor_text, joined, limited_confidence, median
from transect.report.engine.text import count, percent, quantity
from transect.report.topics.distribution.facts import STEP, DistributionCost, distribution_costs
from transect.stats.comparisons import Confidence


def distribution_findings(context: Context) -> list[Finding]:
    """Per workload: the cost of the best distributed cell, and the most that is hidden."""
    findings: list[Finding] = []
    for workload in context.workloads("train"):
        groups = context.of("train", workload)
        main = main_kind(groups)
        groups = [g for g in groups if g.kind == main and g.ok and not g.wrong]
        labels = group_labels(groups, always=("ranks",))
        findings += [*_cost(context, workload, groups, labels), *_overlap(workload, groups, labels)]
    return findings


def split_text(cost: DistributionCost) -> str:
    """Write what a cost is made of, in shares of the ideal step; as written, the parts add up to it.

    They are medians of their own, so a rest is left, and may be negative.
    """
    parts = [
        (share, what)
        for share, what in (
            (cost.waited, "waiting for messages"),
            (cost.computing, "slower computing"),
            (cost.input, "input"),
        )
        if share is not None
    ]
    # Whole per cent, as the cost itself is written: what rounding leaves is in the rest too.
    remaining = round(100 * cost.cost) - sum(round(100 * share) for share, _ in parts)
    written = [f"{_whole(round(100 * share))} {what}" for share, what in parts]
    if remaining:
        written.append(f"{_whole(remaining)} {'unexplained' if cost.parts_known else 'not told'}")
    elif not cost.parts_known:
        written.append("nothing left for what is not told")
    return ", ".join(written)


def _whole(value: int) -> str:
    return f"{value} %".replace("-", "−")


def _cost(context: Context, workload: str, groups: list[TrainGroup], labels: Mapping[Cell, str]) -> list[Finding]:
    kind = main_kind(groups)
    floor = context.floors.get("train", workload, STEP, kind)
    every = [cost for cost in distribution_costs(groups, floor) if cost.group.cell.ranks > 1]
    able = [cost for cost in every if not cost.group.over_subscribed]
    best = min(able, key=lambda cost: _place(cost.group), default=None)
    comparison = best.comparison if best is not None else None
    if best is None or comparison is None:
        return []
    comparison = under(comparison, best.group, best.base)
    cell, base = best.group.cell, labels[best.base.cell]
    ideal = (
        f"a perfect split of {base} over {cell.ranks}"
        if best.scaling is ScalingKind.STRONG
        else f"{base} with as much work per rank"
    )
    if not best.real:
        how = f"is {same_within(comparison)} as" if comparison.equal else "cannot be told apart from"
        claim = f"the step of {labels[cell]} {how} {ideal}."
        confidence = limited_confidence(comparison.confidence, best.group, best.base)
    elif best.cost >= 0:
        claim = (
            f"the step of {labels[cell]}, the best distributed cell, takes "
            f"{percent(best.cost)} longer than {ideal}: {split_text(best)}."
        )
        confidence = limited_confidence(comparison.confidence, best.group, best.base)
    else:
        claim = (
            f"the step of {labels[cell]} takes {percent(-best.cost)} less than {ideal}: "
            "look at the base before trusting it."
        )
        confidence = Confidence.INCONCLUSIVE
    by = "time to quality" if may_be_ranked(best.group) else "samples/s"
    evidence = [
        f"step {quantity(best.step_s, 's')}, ideal {quantity(best.ideal_s, 's')}",
        comparison.reason,
        f"best by {by}",
        floor_text(floor),
    ]
    if len(every) > len(able):
        evidence.append(f"{len(every) - len(able)} with more ranks than cores left out")
    return [
        Finding(
            subject=workload,
            claim=claim,
            evidence=joined(*evidence),
            confidence=confidence,
            kind="distribution",
            comparisons=(comparison,),
            groups=(best.group, best.base),
        )
    ]


def _place(group: Group) -> tuple[bool, float, str]:
    """Sort by time to quality, and those that have none that counts by speed, after all others."""
    reached = may_be_ranked(group)
    value = median(group, TIME) if reached else -(median(group, METRIC) or 0.0)
    return not reached, value or 0.0, group.cell.id


def _overlap(workload: str, groups: list[Group], labels: Mapping[Cell, str]) -> list[Finding]:
    spread = [g for g in groups if g.cell.ranks > 1 and not g.over_subscribed]
    overlaps = [(value, g) for g in spread if (value := median(g, "overlap")) is not None]
    if not overlaps:
        return []
    top, group = max(overlaps, key=lambda pair: (pair[0], pair[1].cell.id))
    if top < 0.005:
        claim = (
            f"no communication hides behind computing in "
            f"{'any of the ' if len(overlaps) > 1 else 'the '}{count(len(overlaps), 'cell')} that "
            f"tell{'s' if len(overlaps) == 1 else ''} it."
        )
    else:
        claim = f"{percent(top)} of the communication of {labels[group.cell]} hides behind computing"
        others = [value for value, other in overlaps if other is not group]
        if others:
            claim += f", the most of {len(overlaps)} cells that tell it; the least is {percent(min(others))}"
        claim += "."
    parts = [("under way", "communication_total_time"), ("waited", "communication_time")]
    evidence = [
        f"{word} {quantity(value, 's')} per step" for word, name in parts if (value := median(group, name)) is not None
    ]
    if evidence:
        evidence[0] = f"{labels[group.cell]}: {evidence[0]}"
    if len(spread) > len(overlaps):
        evidence.append(f"{count(len(spread) - len(overlaps), 'cell')} of several ranks do not tell")
    return [
        Finding(
            subject=workload,
            claim=claim,
            evidence=joined(*evidence) or "from overlap",
            confidence=Confidence.PROVISIONAL,
            kind="overlap",
        )
    ]
