"""Findings from twins: what input costs, and what a sum of gradients does to the training."""

from __future__ import annotations

from transect.analysis.groups import grouped
from transect.analysis.labels import people_name, word
from transect.analysis.quality import reaches_target
from transect.analysis.scaling import METRIC, TrainGroup
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import basis_words, needs_words
from transect.report.engine.finding import Finding, joined, limited_confidence, median
from transect.report.engine.text import count, number, percent
from transect.report.topics.distribution.twins import SumTwins, penalty, rate_factor, sum_twins
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Answer


def twin_findings(context: Context) -> list[Finding]:
    """Per workload: the largest penalty of input, and sum beside mean on the most ranks."""
    findings: list[Finding] = []
    for workload in context.workloads("train"):
        groups = context.of("train", workload)
        findings += [*_input(context, workload), *_sum(workload, groups)]
    return findings


def _input(context: Context, workload: str) -> list[Finding]:
    every = [loss for loss in context.contrasts.of("twin.input", workload) if not loss.over_subscribed]
    if not every:
        return []
    top = max(every, key=lambda loss: (penalty(loss).value, loss.group.cell.id))
    name = people_name(top.group.cell, [loss.group.cell for loss in every], always=("ranks",), never=("input",))
    what = "decoding files" if top.group.cell.get("input") == "files" else "input from stored arrays"
    if top.better is top.base:
        claim = f"{what} costs {name} {percent(penalty(top).value, 1)} of its speed on random numbers"
    elif top.answer is Answer.SAME:
        claim = f"{name} is as fast with {what} as on random numbers, within {percent(top.comparison.margin)}"
    elif top.shown:
        claim = f"{name} is faster with {what} than on random numbers: look at its twin"
    else:
        claim = f"whether {what} costs {name} anything is not known{needs_words(top)}"
    more = f", the most of {len(every)} pairs" if len(every) > 1 and top.shown else ""
    return [
        Finding(
            subject=workload,
            claim=f"{claim}{more}.",
            short=claim,
            evidence=joined(
                f"{number(median(top.group, METRIC) or 0)} against {number(median(top.base, METRIC) or 0)} samples/s",
                basis_words(top),
                top.reason,
            ),
            confidence=limited_confidence(top.confidence, top.group, top.base),
            kind="input",
            contrasts=tuple(every),
            groups=(top.group, top.base),
        )
    ]


def _sum(workload: str, groups: list[TrainGroup]) -> list[Finding]:
    """One finding of what is summed for comparison, and one of each strategy that was published so."""
    found = grouped(sum_twins(groups), lambda pair: pair.published)
    return [finding for name in sorted(found) for finding in _summed(workload, found[name])]


def _summed(workload: str, pairs: list[SumTwins]) -> list[Finding]:
    cells = [group.cell for pair in pairs for group in (pair.summed, pair.mean)]
    published = pairs[0].published
    pair = next((twins for twins in pairs if twins.mean.ok and not twins.mean.wrong), pairs[0])
    label = people_name(pair.summed.cell, cells, always=("ranks",), never=("reduce",))
    ranks = pair.summed.cell.ranks
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
    mean = f"by {word('strategy', pair.mean.cell.strategy)}" if published else ""
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
