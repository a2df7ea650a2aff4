"""A finding on runtimes under an offered load: which keeps up with the highest."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.groups import grouped
from transect.analysis.serving import InferGroup, identity_size, versions, was_compared
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import count, number
from transect.report.topics.serving.facts import faithful_groups
from transect.report.topics.serving.load_facts import highest_load, is_saturated, saturation
from transect.stats.comparisons import Confidence
from transect.stats.samples import MIN_INTERVAL_VALUES


def offered_load_findings(context: Context) -> list[Finding]:
    """Say per workload and number of sessions which runtime serves the highest offered load."""
    found = []
    for workload in context.workloads("infer"):
        if identity_size(workload) is not None:
            continue
        under_load = [g for g in faithful_groups(context, workload) if g.cell.load is not None]
        alike = grouped(under_load, lambda group: group.cell.apart_from("runtime", "load"))
        found += [finding for members in alike.values() if (finding := _finding(workload, members)) is not None]
    return found


def _finding(workload: str, groups: Sequence[InferGroup]) -> Finding | None:
    """Compare runtimes at the loads that were offered to all; None for one runtime."""
    of_runtime = grouped(groups, lambda group: group.cell.runtime)
    offered = [{group.cell.load or 0.0 for group in members} for members in of_runtime.values()]
    common = sorted(set.intersection(*offered))
    if len(of_runtime) < 2 or not common:
        return None
    able = {name: [group for group in members if group.cell.load in common] for name, members in of_runtime.items()}
    highest = {name: highest_load(members) for name, members in able.items()}
    cell = groups[0].cell
    parts = (
        cell.provider,
        cell.precision if cell.precision != "fp32" else "",
        f"options {cell.options}" if cell.options != "equal" else "",
        f"batch {cell.batch}",
        count(cell.threads, "thread"),
        count(cell.sessions, "session"),
        f"from {cell.exporter}" if cell.exporter else "",
    )
    return Finding(
        subject=workload,
        scope=f"on {', '.join(filter(None, parts))}",
        kind="load",
        claim=_claim(highest, common),
        confidence=_confidence(able, highest, common),
        evidence=joined(
            f"of {count(len(common), 'load')} offered to all; above it the queue grows",
            f"{count(min(len(group.ok) for members in able.values() for group in members), 'run')} each",
        ),
    )


def _claim(highest: dict[str, float], common: Sequence[float]) -> str:
    best = max(highest.values())
    if best == 0:
        return f"no runtime keeps up with the lowest load offered, {number(common[0])} requests/s."
    first = [name for name, load in highest.items() if load == best]
    alike = " alike" if len(first) == len(highest) else ""
    does = f"{names(first, 9)}{alike} {'keeps' if len(first) == 1 else 'keep'} up"
    most = ", the highest load offered" if best == common[-1] else ""
    others = sorted((-load, name) for name, load in highest.items() if load < best)
    listed = names([f"{name} with {number(-load) if load else 'none'}" for load, name in others], 99)
    return f"{does} with {number(best)} requests/s{most}{'; ' if listed else ''}{listed}."


def _confidence(able: dict[str, list[InferGroup]], highest: dict[str, float], common: Sequence[float]) -> Confidence:
    """Confirmed needs runs that all agree on both sides of each runtime's highest load."""
    if len(set(highest.values())) == 1:
        return Confidence.INCONCLUSIVE
    every = [group for members in able.values() for group in members]
    beside = [
        group
        for name, members in able.items()
        for group in members
        if group.cell.load in (highest[name], _next(common, highest[name]))
    ]
    agree = all(
        len(runs := saturation(group)) >= MIN_INTERVAL_VALUES and set(runs) == {is_saturated(group)} for group in beside
    )
    sound = all(map(was_compared, every)) and not any(group.noisy for group in every)
    return Confidence.CONFIRMED if agree and sound and len(versions(every)) < 2 else Confidence.PROVISIONAL


def _next(loads: Sequence[float], load: float) -> float | None:
    return next((higher for higher in loads if higher > load), None)
