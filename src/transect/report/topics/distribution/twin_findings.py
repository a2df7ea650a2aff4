"""Findings from twins: what input costs, and what a sum of gradients does to the training."""

from __future__ import annotations

from dataclasses import replace

from transect.analysis.groups import grouped
from transect.analysis.labels import group_labels
from transect.analysis.quality import reaches_target
from transect.analysis.scaling import TrainGroup
from transect.analysis.side_by_side import under
from transect.report.engine.context import Context
from transect.report.engine.deciding import same_within
from transect.report.engine.finding import Finding, limited_confidence, median
from transect.report.engine.text import count, number, percent
from transect.report.topics.distribution.twins import SumTwins, input_penalties, rate_factor, sum_twins
from transect.stats.comparisons import Confidence, Verdict


def twin_findings(context: Context) -> list[Finding]:
    """Per workload: the largest penalty of input, and sum beside mean on the most ranks."""
    findings: list[Finding] = []
    for workload in context.workloads("train"):
        groups = context.of("train", workload)
        findings += [*_input(context, workload, groups), *_sum(workload, groups)]
    return findings


def _input(context: Context, workload: str, groups: list[TrainGroup]) -> list[Finding]:
    every = input_penalties(groups, context.floors)
    able = [(loss, loss.comparison) for loss in every if loss.comparison is not None]
    if not able:
        return []
    top, comparison = max(able, key=lambda pair: (pair[0].value, pair[0].group.cell.id))
    # The largest of so many.
    comparison = under(replace(comparison, n_candidates=2 * len(able)), top.group, top.twin)
    label = group_labels([loss.group for loss in every])[top.group.cell]
    what = "decoding files" if top.group.cell.get("input") == "files" else "input from stored arrays"
    if comparison.verdict is Verdict.BETTER:
        claim = f"{what} costs {label} {percent(top.value, 1)} of its speed on synthetic input"
        confidence = limited_confidence(comparison.confidence, top.group, top.twin)
    elif comparison.equal:
        claim = f"{what} leaves {label} {same_within(comparison)} as on synthetic input"
        confidence = limited_confidence(comparison.confidence, top.group, top.twin)
    else:
        claim = f"{what} costs {label} nothing that can be told from noise"
        confidence = Confidence.INCONCLUSIVE
    if len(able) > 1:
        claim += f", the most of {len(able)} pairs"
    evidence = (
        f"{number(top.rate.median)} against {number(top.twin_rate.median)} samples/s on random "
        f"numbers; {comparison.reason}"
    )
    return [
        Finding(
            subject=workload,
            claim=claim + ".",
            evidence=evidence,
            confidence=confidence,
            kind="input",
            comparisons=(comparison,),
            groups=(top.group, top.twin),
        )
    ]


def _sum(workload: str, groups: list[TrainGroup]) -> list[Finding]:
    """One finding of what is summed for comparison, and one of each strategy that was published so."""
    found = grouped(sum_twins(groups), lambda pair: pair.published)
    return [finding for name in sorted(found) for finding in _summed(workload, found[name])]


def _summed(workload: str, pairs: list[SumTwins]) -> list[Finding]:
    both = [group for pair in pairs for group in (pair.summed, pair.mean)]
    published = pairs[0].published
    always = ("ranks", "strategy") if published else ("ranks",)
    labels = group_labels(both, never=("reduce",), always=always)
    pair = next((twins for twins in pairs if twins.mean.ok and not twins.mean.wrong), pairs[0])
    label, ranks = labels[pair.summed.cell], pair.summed.cell.ranks
    if not pair.summed.ok:
        if not pair.summed.wrong:
            return []
        cause = next((r.cause.value for r in pair.summed.records if r.cause), "wrong result")
        claim = f"{label} with the sum of gradients instead of their mean: {cause}."
        evidence = next((r.message for r in pair.summed.records if r.message), cause)
        reason = evidence.split("\n")[0][:160]
        return [_finding(workload, claim, reason, Confidence.PROVISIONAL, named=True)]
    factor = rate_factor(pair.summed)
    # One rank that trains is no sum: its path is the mean's.
    if factor == 1:
        return []
    counts = f"every step counts {number(factor or ranks)} times"
    mean = f"by {pair.mean.cell.strategy}" if published else ""
    claim = (
        f"{label} sums without a mean, as published: effective rate x {number(factor or ranks)}, {counts}; "
        f"beside the mean {mean} the loss ends at {_pair(pair, 'final_loss')}"
        if published
        else f"the sum of gradients takes {label} along another path than their mean: {counts}, the loss "
        f"ends at {_pair(pair, 'final_loss')}"
    )
    if median(pair.summed, "accuracy") is not None:
        claim += f" and the accuracy at {_pair(pair, 'accuracy')}"
    claim += f"{_steps(pair)}. A speed-up to quality that grows with a sum is partly that of the rate."
    evidence = (
        f"sum against mean in {count(len(pairs), 'pair')} of the same start, batches and learning "
        "rate, each held against a reference that sums or averages alike"
    )
    if published:
        evidence += "; the published Go study sums, so its training changes with the number of ranks"
    return [_finding(workload, claim, evidence, _confidence(pair))]


def _pair(pair: SumTwins, name: str) -> str:
    return " instead of ".join(
        number(value) if (value := median(group, name)) is not None else "an unknown value"
        for group in (pair.summed, pair.mean)
    )


def _steps(pair: SumTwins) -> str:
    """Say who reaches the target, and after how many steps."""
    steps = [median(group, "steps_to_quality") if reaches_target(group) else None for group in (pair.summed, pair.mean)]
    if steps[0] is None and steps[1] is None:
        return "; neither reaches the target in every run"
    words = ["not at all" if step is None else f"after {number(step)} steps" for step in steps]
    return f"; the target is reached {words[0]}, with the mean {words[1]}"


def _confidence(pair: SumTwins) -> Confidence:
    """Repeats start alike in pairs: provisional when all of them move the same way."""
    both = [
        {r.repeat: value for r in group.ok if (value := r.value("final_loss")) is not None}
        for group in (pair.summed, pair.mean)
    ]
    moves = {both[0][repeat] > both[1][repeat] for repeat in both[0] if repeat in both[1]}
    return Confidence.PROVISIONAL if len(moves) == 1 else Confidence.INCONCLUSIVE


def _finding(subject: str, claim: str, evidence: str, confidence: Confidence, *, named: bool = False) -> Finding:
    return Finding(
        subject=subject, claim=claim, evidence=evidence, confidence=confidence, kind="reduction", named=named
    )
