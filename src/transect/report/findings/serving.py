"""Findings on runtimes: which one answers first, which one serves most."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from transect.analysis.comparisons import Sureness
from transect.analysis.groups import Group, group_labels
from transect.analysis.serving import (
    RUN,
    WHOLE,
    InferGroup,
    comparable,
    identity_size,
    measure_of,
    rates,
    was_compared,
)
from transect.report.context import Context
from transect.report.findings.deciding import same_within
from transect.report.findings.finding import (
    Finding,
    inside_run,
    joined,
    machine_differences,
    names,
    race,
)
from transect.report.findings.models import judge_export
from transect.report.text import count, number, quantity

__all__ = ["faithful_groups", "serving_findings"]


def faithful_groups(context: Context, workload: str) -> list[InferGroup]:
    """Return infer groups with a right result, from exports that are not known to be unfaithful.

    In another precision than the framework's a class may turn: its tolerance decides.
    """
    unfaithful = {
        record.cell.get("exporter")
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
        and (
            group.cell.precision != "fp32" or min(group.values("top1_agreement"), default=1.0) >= 1
        )
        and not max(group.values("nonfinite_outputs"), default=0.0)
    ]


def serving_findings(context: Context) -> list[Finding]:
    """Per workload, provider and precision: the lowest latency, and the highest throughput."""
    findings: list[Finding] = []
    for workload in context.workloads("infer"):
        if identity_size(workload) is not None:
            # What a call costs is a finding of its own.
            continue
        for words, groups in comparable(faithful_groups(context, workload)).items():
            smallest = min(group.cell.batch for group in groups)
            first = [group for group in groups if group.cell.batch == smallest]
            where = f"on {words}"
            findings += _best(context, workload, first, RUN, f"{where}, batch {smallest}")
            findings += _best(context, workload, groups, "throughput", where)
    return findings


def _best(
    context: Context, workload: str, groups: Sequence[Group], name: str, scope: str
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
        does, do, value = "answers first", "answer first", quantity(middle, "s")
    else:
        does, do, value = "serves most", "serve most", f"{number(middle)} samples/s"
    value += " end to end" if whole else ""
    label = labels[result.best.cell]
    if result.runner_up is None or result.comparison is None:
        claim = f"{label} {does}, {value}; no other runtime was measured."
        sureness = Sureness.TENTATIVE
    elif result.tied:
        tied = names([label, *(labels[group.cell] for group in result.tied)], 4)
        equal = all(one.equal for one in result.ties)
        how = same_within(result.ties[0]) if equal else "not distinguishable"
        claim = f"{tied} {do}, {how}: the best median is {value}."
        sureness = result.sureness
    else:
        claim = (
            f"{label} {does}, {value}, {number(result.comparison.factor)} times better "
            f"than {labels[result.runner_up.cell]}."
        )
        sureness = result.sureness
    checked = "outputs checked"
    if not was_compared(result.best):
        checked = "outputs not compared with the framework's"
        sureness = Sureness.TENTATIVE if sureness is Sureness.FIRM else sureness
    differing = machine_differences(result.best, result.runner_up) if result.runner_up else []
    return [
        Finding(
            subject=workload, scope=scope, claim=claim, sureness=sureness, kind="runtime",
            comparisons=result.comparisons,
            evidence=joined(
                f"median of {count(len(result.values), 'run')} {value}", checked,
                inside_run(groups),
                result.comparison.reason if result.comparison else "",
                f"the two differ in {names(differing, 9)} as well" if differing else "",
            ),
        )
    ]  # fmt: skip
