"""Findings on runtimes: which one answers first, which one serves most."""

from __future__ import annotations

from transect.analysis.comparisons import Sureness
from transect.analysis.groups import Group, group_labels
from transect.report.context import Context
from transect.report.findings.finding import Finding, machine_differences, names, race
from transect.report.findings.models import judge_export
from transect.report.text import count, number, quantity

__all__ = ["faithful_groups", "serving_findings"]


def faithful_groups(context: Context, workload: str) -> list[Group]:
    """Return infer groups with a right result, from exports that are not known to be unfaithful."""
    bad = {
        (record.cell.workload, record.cell.framework, record.cell.exporter)
        for record in context.records
        if record.stage == "export" and judge_export(record).faithful is False
    }
    return [
        group
        for group in context.of("infer", workload)
        if group.ok
        and not group.wrong
        and (workload, group.cell.framework, group.cell.exporter) not in bad
        and min(group.values("top1_agreement"), default=1.0) >= 1
    ]


def serving_findings(context: Context) -> list[Finding]:
    """Per workload and provider: the lowest latency, and the highest throughput."""
    found: list[Finding] = []
    for workload in context.workloads("infer"):
        groups = faithful_groups(context, workload)
        for provider in sorted({group.cell.provider or "cpu" for group in groups}):
            own = [group for group in groups if (group.cell.provider or "cpu") == provider]
            smallest = min(group.cell.batch or 1 for group in own)
            first = [group for group in own if (group.cell.batch or 1) == smallest]
            where = f"{workload} on {provider}"
            found += _best(context, first, "latency", f"{where}, batch {smallest}")
            found += _best(context, own, "throughput", where)
    return found


def _best(context: Context, groups: list[Group], name: str, where: str) -> list[Finding]:
    """Compare the best group of each runtime with those of the other runtimes."""
    labels = group_labels(groups)
    best_of: dict[str, Group] = {}
    for runtime in sorted({group.cell.runtime or "" for group in groups}):
        own = [group for group in groups if (group.cell.runtime or "") == runtime]
        result = race(own, name, None)
        if result is not None:
            best_of[runtime] = result.best
    if not best_of:
        return []
    workload = groups[0].cell.workload
    floor = context.floors.get("infer", workload, name)
    result = race(list(best_of.values()), name, floor)
    assert result is not None
    summary = result.best.summary(name)
    assert summary is not None
    if name == "latency":
        does, value = "answers first", quantity(summary.median, "s")
    else:
        does, value = "serves most", f"{number(summary.median)} samples/s"
    label = labels[result.best.cell]
    evidence = [f"median of {count(summary.count, 'run')} {value}", "outputs checked"]
    if len(best_of) == 1:
        text = f"{where}: {label} {does}, {value}; no other runtime was measured."
        sureness = Sureness.TENTATIVE
    elif result.tied:
        others = [labels[group.cell] for group in result.tied]
        plural = "answer first" if name == "latency" else "serve most"
        tied = names([label, *others], 4)
        text = f"{where}: {tied} {plural}, not distinguishable: the best median is {value}."
        sureness = Sureness.OPEN
    else:
        assert result.comparison is not None and result.runner_up is not None
        text = (
            f"{where}: {label} {does}, {value}, {number(result.comparison.factor)} times better "
            f"than {labels[result.runner_up.cell]}."
        )
        sureness = result.comparison.sureness
    if result.comparison is not None and result.runner_up is not None:
        evidence.append(result.comparison.reason)
        differing = machine_differences(result.best, result.runner_up)
        if differing:
            evidence.append(f"the two differ in {names(differing, 9)} as well")
    if not result.best.values("top1_agreement"):
        evidence[1] = "outputs not compared with the framework's"
        sureness = Sureness.TENTATIVE if sureness is Sureness.FIRM else sureness
    return [
        Finding(
            text=text, evidence="; ".join(evidence), sureness=sureness,
            kind="runtime", about=workload or "",
        )
    ]  # fmt: skip
