"""Findings on distribution: what it costs, and how much communication hides behind computing."""

from __future__ import annotations

from transect.analysis.contrasts import contrast
from transect.analysis.kinds import main_kind
from transect.analysis.labels import people_name
from transect.analysis.quality import may_be_ranked
from transect.analysis.scaling import METRIC, ScalingKind, TrainGroup
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import basis_words
from transect.report.engine.finding import Finding, joined, limited_confidence, median
from transect.report.engine.text import count, factor, percent, quantity, scale_for
from transect.report.topics.distribution.facts import LOST, STEP, DistributionCost, distribution_costs, soonest_first
from transect.stats.comparisons import Confidence


def distribution_findings(context: Context) -> list[Finding]:
    """Per workload: the cost of the best distributed cell, and the most that is hidden."""
    findings: list[Finding] = []
    for workload in context.workloads("train"):
        groups = context.of("train", workload)
        main = main_kind(groups)
        groups = [g for g in groups if g.kind == main and g.ok and not g.wrong]
        findings += [*_cost(context, workload, groups), *_overlap(workload, groups)]
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


def _cost(context: Context, workload: str, groups: list[TrainGroup]) -> list[Finding]:
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
    if times[1] > 1 and not beside.barred:
        claim = f"{need}, {ideal}: {split_text(best)}"
        confidence = Confidence.CONFIRMED if beside.sound else Confidence.PROVISIONAL
    elif times[2] < 1:
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


def _overlap(workload: str, groups: list[TrainGroup]) -> list[Finding]:
    spread = [g for g in groups if g.cell.ranks > 1 and not g.over_subscribed]
    overlaps = [(value, g) for g in spread if (value := median(g, "overlap")) is not None]
    if not overlaps:
        return []
    top, group = max(overlaps, key=lambda pair: (pair[0], pair[1].cell.id))
    name = people_name(group.cell, [each.cell for each in groups], always=("ranks",))
    if top < 0.005:
        claim = (
            f"no communication hides behind computing in "
            f"{'any of the ' if len(overlaps) > 1 else 'the '}{count(len(overlaps), 'cell')} that "
            f"tell{'s' if len(overlaps) == 1 else ''} it."
        )
    else:
        claim = f"{percent(top)} of the communication of {name} hides behind computing"
        others = [value for value, other in overlaps if other is not group]
        if others:
            claim += f", the most of {len(overlaps)} cells that tell it; the least is {percent(min(others))}"
        claim += "."
    parts = [("under way", "communication_total_time"), ("waited", "communication_time")]
    evidence = [
        f"{word} {quantity(value, 's')} per step" for word, name in parts if (value := median(group, name)) is not None
    ]
    if evidence:
        evidence[0] = f"{name}: {evidence[0]}"
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
