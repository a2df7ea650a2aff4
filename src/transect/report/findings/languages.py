"""Findings on trainers in another language: equal work, and what has to be installed for it."""

from __future__ import annotations

from transect.analysis.comparisons import Confidence
from transect.analysis.labels import group_labels
from transect.analysis.languages import GOAL, Installed, Language, installed, is_other, languages
from transect.analysis.parallelism import median_of
from transect.report.context import Context
from transect.report.findings.finding import Finding, joined, limited_confidence
from transect.report.text import clean, count, ends, factor, number, percent, quantity

# Against whom the goal stands.
_RIVAL = "numpy"


def language_findings(context: Context) -> list[Finding]:
    """Per equal cell: another language beside numpy; and per workload what has to be installed."""
    pairs = languages(context.of("train"), context.floors)
    return [
        *(_step(one) for one in pairs if _is_base(one)),
        *(found for workload in context.workloads("train") if (found := _size(context, workload))),
    ]


def _is_base(one: Language) -> bool:
    """Whether it is about the trainers themselves: alone, beside numpy. The others stand in the section."""
    return one.in_python.cell.framework == _RIVAL and one.group.cell.strategy == "single"


def installed_rows(context: Context, workload: str) -> list[Installed]:
    """Return the frameworks of a workload by size; none where no other language is among them."""
    rows = installed(context.of("train"), workload)
    told = {row.group.cell.framework for row in rows}
    return rows if any(map(is_other, told)) and not all(map(is_other, told)) else []


def goal_words(one: Language) -> str:
    """Say whether the goal was reached."""
    reached = one.reached
    if reached is None:
        return "shares cores" if one.result.over_subscribed else "cannot be told"
    return "reached" if reached else "missed"


def _step(one: Language) -> Finding:
    group, other, result = one.group, one.in_python, one.result
    labels = group_labels([group, other], always=("framework", "strategy", "ranks"))
    said = {"reached": "within", "missed": "beyond"}.get(goal_words(one))
    goal = (
        f"{said} the goal of {factor(GOAL)}"
        if said
        else f"whether that is within the goal of {factor(GOAL)} cannot be told"
    )
    used = [median_of(each, "cpu_utilisation") for each in (group, other)]
    confidence = limited_confidence(result.comparison.confidence, group, other)
    if one.reached is None:
        confidence = Confidence.INCONCLUSIVE
    elif not result.shown:
        # Too near to be told apart, and so within the goal, as the range of both says.
        confidence = Confidence.PROVISIONAL
    return Finding(
        subject=str(group.cell.workload),
        kind="language",
        named=True,
        confidence=confidence,
        comparisons=result.comparisons,
        scope=f"batch {group.cell.batch}, {count(group.cell.threads, 'thread')}",
        groups=(group, other),
        claim=f"{labels[group.cell]} takes {factor(result.ratio.value)} times ({ends(result.ratio, factor)}) the step of "
        f"{labels[other.cell]} on equal work, {goal}.",
        evidence=joined(
            f"steps {quantity(median_of(group, 'step_time'), 's')} and {quantity(median_of(other, 'step_time'), 's')}",
            f"CPU use {percent(used[0])} and {percent(used[1])}" if None not in used else "",
            _blas(one),
            result.reason,
        ),
    )


def _blas(one: Language) -> str:
    """Say what multiplies the matrices on both sides, where both tell."""
    told = []
    for group in (one.group, one.in_python):
        libraries = group.ok[0].provenance.get("libraries") or {}
        told.append(next((f"{name} {v}" for name, v in libraries.items() if "blas" in name.lower()), ""))
    return clean(f"BLAS {told[0]} and {told[1]}") if all(told) else ""


def _size(context: Context, workload: str) -> Finding | None:
    rows = installed_rows(context, workload)
    if not rows:
        return None
    least = next(row for row in rows if is_other(row.group.cell.framework))
    others = [row for row in rows if not is_other(row.group.cell.framework)]
    told = "; ".join(_words(row) for row in (least, *others))
    near = others[0]
    ratio = (near.bytes or 0.0) / (least.bytes or 1.0)
    return Finding(
        subject=workload,
        kind="installed",
        named=True,
        confidence=Confidence.CONFIRMED,
        claim=f"{clean(least.group.cell.framework)} needs {count(int(least.files or 0), 'file')} of "
        f"{quantity(least.bytes, 'B')} before it trains on one rank, the least of the others, "
        f"{clean(near.group.cell.framework)}, {count(int(near.files or 0), 'file')} of {quantity(near.bytes, 'B')}, "
        f"{number(ratio)} times as many bytes.",
        evidence=joined(
            f"to the end of the first step and resident before it: {told}",
            "environments hold what this project pins, interpreter included; sizes are facts, times and memory medians",
        ),
    )


def _words(row: Installed) -> str:
    name = clean(row.group.cell.framework)
    return f"{name} {quantity(row.first_step_s, 's')}, {quantity(row.at_rest, 'B')}"
