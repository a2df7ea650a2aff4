"""Findings from twins: what input costs, and what a sum of gradients does to the training."""

from __future__ import annotations

from transect.analysis.comparisons import Sureness, Verdict
from transect.analysis.groups import Group, group_labels
from transect.analysis.twins import SumTwins, input_penalties, rate_factor, sum_twins
from transect.report.context import Context
from transect.report.findings.finding import Finding
from transect.report.findings.steps import median
from transect.report.findings.training import reaches_target
from transect.report.text import count, number, percent

__all__ = ["twin_findings"]


def twin_findings(context: Context) -> list[Finding]:
    """Per workload: the largest penalty of input, and sum beside mean on the most ranks."""
    found: list[Finding] = []
    for workload in context.workloads("train"):
        groups = context.of("train", workload)
        found += [*_input(context, workload, groups), *_sum(workload, groups)]
    return found


def _input(context: Context, workload: str, groups: list[Group]) -> list[Finding]:
    every = input_penalties(groups, context.floors)
    able = [one for one in every if one.comparison is not None]
    if not able:
        return []
    top = max(able, key=lambda one: (one.value, one.group.cell.id))
    labels = group_labels([one.group for one in every])
    label, comparison = labels[top.group.cell], top.comparison
    assert comparison is not None
    what = "decoding files" if top.group.cell.input == "files" else "input from stored arrays"
    if comparison.verdict is Verdict.BETTER:
        text = (
            f"{workload}: {what} costs {label} {percent(top.value, 1)} of its speed on synthetic "
            "input"
        )
        sureness = comparison.sureness
    else:
        text = f"{workload}: {what} costs {label} nothing that can be told from noise"
        sureness = Sureness.OPEN
    if len(able) > 1:
        text += f", the most of {len(able)} pairs"
    evidence = (
        f"{number(top.rate.median)} against {number(top.twin_rate.median)} samples/s on random "
        f"numbers; {comparison.reason}"
    )
    return [Finding(text=text + ".", evidence=evidence, sureness=sureness, kind="input",
                    about=workload)]  # fmt: skip


def _sum(workload: str, groups: list[Group]) -> list[Finding]:
    pairs = sum_twins(groups)
    if not pairs:
        return []
    both = [group for pair in pairs for group in (pair.summed, pair.mean)]
    labels = group_labels(both, never=("reduce",), always=("ranks",))
    pair = next((one for one in pairs if one.mean.ok and not one.mean.wrong), pairs[0])
    label, ranks = labels[pair.summed.cell], pair.summed.cell.ranks
    if not pair.summed.ok:
        if not pair.summed.wrong:
            return []
        cause = next((r.cause.value for r in pair.summed.records if r.cause), "wrong result")
        text = f"{workload}: {label} with the sum of gradients instead of their mean: {cause}."
        evidence = next((r.message for r in pair.summed.records if r.message), cause)
        return [_finding(text, evidence.split("\n")[0][:160], Sureness.TENTATIVE, workload)]
    factor = rate_factor(pair.summed)
    text = (
        f"{workload}: the sum of gradients takes {label} along another path than their mean: every "
        f"step counts {number(factor or ranks)} times, the loss ends at {_pair(pair, 'final_loss')}"
    )
    if median(pair.summed, "accuracy") is not None:
        text += f" and the accuracy at {_pair(pair, 'accuracy')}"
    text += (
        f"{_steps(pair)}. A speed-up to quality that grows with a sum is partly that of the rate."
    )
    evidence = (
        f"sum against mean in {count(len(pairs), 'pair')} of the same start, batches and learning "
        "rate, each held against a reference that sums or averages alike; the published Go study "
        "sums, so its training changes with the number of ranks"
    )
    return [_finding(text, evidence, _sureness(pair), workload)]


def _pair(pair: SumTwins, name: str) -> str:
    return " instead of ".join(
        number(value) if (value := median(group, name)) is not None else "an unknown value"
        for group in (pair.summed, pair.mean)
    )


def _steps(pair: SumTwins) -> str:
    """Say who reaches the target, and after how many steps."""
    steps = [
        median(group, "steps_to_quality") if reaches_target(group) else None
        for group in (pair.summed, pair.mean)
    ]
    if steps[0] is None and steps[1] is None:
        return "; neither reaches the target in every run"
    words = [f"after {number(one)} steps" if one is not None else "not at all" for one in steps]
    return f"; the target is reached {words[0]}, with the mean {words[1]}"


def _sureness(pair: SumTwins) -> Sureness:
    """Repeats start alike in pairs: tentative when all of them move the same way."""
    both = [
        {r.cell.repeat: value for r in group.ok if (value := r.value("final_loss")) is not None}
        for group in (pair.summed, pair.mean)
    ]
    moves = {both[0][repeat] > both[1][repeat] for repeat in both[0] if repeat in both[1]}
    return Sureness.TENTATIVE if len(moves) == 1 else Sureness.OPEN


def _finding(text: str, evidence: str, sureness: Sureness, about: str) -> Finding:
    return Finding(text=text, evidence=evidence, sureness=sureness, kind="reduction", about=about)
