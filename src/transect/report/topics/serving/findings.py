"""Findings on runtimes: which one answers first, which one serves most."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from transect.analysis.bounds import run_bound
from transect.analysis.groups import Group
from transect.analysis.labels import group_labels
from transect.analysis.serving import RUN, WHOLE, InferGroup, comparable, identity_size, measure_of, rates, was_compared
from transect.domain.cell import Cell
from transect.domain.until import MARGIN
from transect.report.engine.context import Context
from transect.report.engine.deciding import same_within
from transect.report.engine.decision import Decision, LeftOut, gain_text, tie_text, why_not
from transect.report.engine.finding import (
    Finding,
    Race,
    inside_run,
    joined,
    lost_runs,
    machine_differences,
    names,
    race,
)
from transect.report.engine.text import count, number, percent, quantity
from transect.report.topics.exports.findings import judge_export
from transect.stats.comparisons import Confidence

# The columns of the decision table.
SERVE_ONE, SERVE_MANY = "serve-one", "serve-many"
_SHOWN = 4


def faithful_groups(context: Context, workload: str) -> list[InferGroup]:
    """Return infer groups with a right result, from exports that are not known to be unfaithful.

    In another precision than the framework's a class may turn: its tolerance decides.
    """
    unfaithful = {
        record.point.get("exporter")
        for group in context.of("export", workload)
        for record in group.records
        if judge_export(record).faithful is False
    }
    return [
        group
        for group in context.of("infer", workload)
        if group.ok
        and not group.wrong
        and group.cell.get("exporter") not in unfaithful
        and (group.cell.precision != "fp32" or min(group.values("top1_agreement"), default=1.0) >= 1)
        and not max(group.values("nonfinite_outputs"), default=0.0)
    ]


def serving_findings(context: Context) -> list[Finding]:
    """Per workload, provider and precision: the lowest latency, and the highest throughput."""
    findings: list[Finding] = []
    for workload in context.workloads("infer"):
        if identity_size(workload) is not None:
            # What a call costs is a finding of its own.
            continue
        faithful = faithful_groups(context, workload)
        left_out = _left_out(context, workload, faithful)
        conditions = comparable(faithful)
        if not conditions and left_out:
            findings.append(_nothing(workload, left_out))
        for words, groups in conditions.items():
            smallest = min(group.cell.batch for group in groups)
            first = [group for group in groups if group.cell.batch == smallest]
            where = f"on {words}"
            scope = f"{where}, batch {smallest}"
            # What could not be used is named once, with the first of its conditions.
            apart = left_out if words == next(iter(conditions)) else ()
            larger = _absent(groups, first, f"not measured at batch {smallest}")
            findings += _best(context, workload, first, RUN, scope, (*apart, *larger))
            findings += _best(context, workload, groups, "throughput", where, apart)
    return findings


def _left_out(context: Context, workload: str, faithful: Sequence[InferGroup]) -> tuple[LeftOut, ...]:
    """Name the cells of runtimes that take no part, and why."""
    kept = {id(group) for group in faithful}
    apart = [group for group in context.of("infer", workload) if id(group) not in kept]
    labels = group_labels(apart, always=("runtime", "threads", "batch"))
    return tuple(
        LeftOut(
            what=labels[group.cell],
            why=why_not(group)
            or ("wrong result" if group.wrong else "its export or its outputs are not the framework's"),
        )
        for group in apart
    )


def _absent(groups: Sequence[InferGroup], taking: Sequence[InferGroup], why: str) -> tuple[LeftOut, ...]:
    """Name the runtimes of which no group takes part."""
    left = {group.cell.runtime for group in groups} - {group.cell.runtime for group in taking}
    return tuple(LeftOut(what=runtime, why=why) for runtime in sorted(left))


def _nothing(workload: str, left_out: tuple[LeftOut, ...]) -> Finding:
    """Say that no runtime can be compared: all failed, were skipped or give wrong outputs."""
    reason = "no runtime gives a usable and right answer"
    return Finding(
        subject=workload,
        claim=f"{reason}, so no latency is compared.",
        kind="runtime",
        evidence="; ".join(f"{omitted.what}: {omitted.why}" for omitted in left_out[:_SHOWN]),
        confidence=Confidence.CONFIRMED,
        decision=Decision(column=SERVE_ONE, instead=reason, left_out=left_out),
    )


def _best(
    context: Context, workload: str, groups: Sequence[InferGroup], name: str, scope: str, left_out: tuple[LeftOut, ...]
) -> list[Finding]:
    """Compare the best group of each runtime with those of the other runtimes.

    Where their Runs hold different parts, by whole calls: `name` is then that of what they give.
    """
    measure = measure_of(group for group in groups if group.values(RUN))
    whole = measure == WHOLE

    def values(group: Group) -> list[float]:
        return group.values(measure) if name == RUN else rates(group, measure)

    labels = group_labels(groups)
    of_runtime: dict[str, list[Group]] = defaultdict(list)
    for group in groups:
        of_runtime[group.cell.get("runtime") or ""].append(group)
    heats = [race(members, name, None, of=values) for _, members in sorted(of_runtime.items())]
    best_of = [heat.best for heat in heats if heat is not None]
    floor = context.floors.get("infer", workload, WHOLE if whole else name)
    result = race(best_of, name, floor, of=values)
    if result is None:
        return []
    middle = statistics.median(result.values)
    if name == RUN:
        column, word = SERVE_ONE, "sooner than"
        does, do, value = "answers first", "answer first", quantity(middle, "s")
    else:
        column, word = SERVE_MANY, "the rate of"
        does, do, value = "serves most", "serve most", f"{number(middle)} samples/s"
    value += " end to end" if whole else ""
    label = labels[result.best.cell]
    best = result.best.cell
    here = [group for group in groups if (group.cell.batch, group.cell.threads) == (best.get("batch"), best.threads)]
    point = f"batch {best.get('batch')}, {count(best.threads, 'thread')}"
    # Elsewhere it is beaten; there it may be better.
    elsewhere = _absent(groups, here, f"not measured at {point}, where the best is")
    left_out = (*left_out, *elsewhere)
    if result.runner_up is None or result.comparison is None:
        only = " at that batch" if any(omitted.why.startswith("not measured") for omitted in left_out) else ""
        claim = f"{label} {does}, {value}; no other runtime was measured{only}."
        confidence = Confidence.PROVISIONAL
    elif result.tied:
        tied = names([label, *(labels[group.cell] for group in result.tied)], 4)
        equal = all(tie.equal for tie in result.ties)
        how = same_within(result.ties[0]) if equal else "not distinguishable"
        claim = f"{tied} {do}, {how}: the median of the first is {value}."
        confidence = result.confidence
    else:
        claim = (
            f"{label} {does}, {value}, {number(result.comparison.factor)} times better "
            f"than {labels[result.runner_up.cell]}."
        )
        confidence = result.confidence
    checked = "outputs checked"
    if not was_compared(result.best):
        checked = "outputs not compared with the framework's"
        confidence = Confidence.PROVISIONAL if confidence is Confidence.CONFIRMED else confidence
    lost = lost_runs(result.best)
    alike = race(of_runtime[result.best.cell.get("runtime") or ""], name, floor, of=values)
    indistinct = names([labels[group.cell] for group in alike.tied], _SHOWN) if alike is not None else ""
    apart = f"not told apart from {indistinct}" if indistinct else ""
    rival = result.runner_up
    if confidence is Confidence.CONFIRMED and (
        lost or any(omitted.what == (rival and rival.cell.get("runtime")) for omitted in elsewhere)
    ):
        confidence = Confidence.PROVISIONAL
    differing = machine_differences(result.best, rival) if rival else []
    return [
        Finding(
            subject=workload,
            scope=scope,
            claim=claim,
            confidence=confidence,
            kind="runtime",
            comparisons=result.comparisons,
            decision=_decision(
                context, result, labels, column, word, value, joined(checked, lost, apart), scope, left_out
            ),
            evidence=joined(
                f"median of {count(len(result.values), 'run')} {value}",
                checked,
                lost,
                apart,
                "; ".join(f"{omitted.what}: {omitted.why}" for omitted in elsewhere),
                inside_run(groups),
                result.comparison.reason if result.comparison else "",
                f"the two differ in {names(differing, 9)} as well" if differing else "",
            ),
        )
    ]


def _decision(
    context: Context,
    result: Race,
    labels: Mapping[Cell, str],
    column: str,
    word: str,
    value: str,
    checked: str,
    scope: str,
    left_out: tuple[LeftOut, ...],
) -> Decision:
    rival = labels[result.runner_up.cell] if result.runner_up is not None else ""
    later = next((group for group in result.ranked[1:] if group not in result.tied), None)
    bound = run_bound(result.best, context.rates)
    run = result.best.summary(RUN)
    limit = ""
    if bound is not None and run is not None and run.median > 0:
        reached = bound.time_s / run.median
        limit = f"reaches {percent(reached)} of the bound set by {bound.kind}"
        limit += ": more than it allows, so the bound or the count of operations is off" if reached > 1 else ""
    return Decision(
        column=column,
        scope=scope,
        winner=labels[result.best.cell],
        value=value,
        quality=checked,
        tied=tuple(labels[group.cell] for group in result.tied),
        equal=bool(result.ties) and all(tie.equal for tie in result.ties),
        margin=result.ties[0].margin if result.ties else MARGIN,
        limit=limit,
        gain=tie_text(result.comparison, rival) if result.tied else gain_text(result.comparison, word, rival),
        second=labels[later.cell] if later is not None else "",
        left_out=left_out,
    )
