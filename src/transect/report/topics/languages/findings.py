"""Findings on trainers in another language: equal work, and what has to be installed for it."""

from __future__ import annotations

from transect.analysis.labels import people_name, word
from transect.analysis.parallelism import median_of
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import ratio_words
from transect.report.engine.finding import Finding, joined, limited_confidence
from transect.report.engine.text import clean, count, factor, number, percent, quantity
from transect.report.topics.languages.facts import GOAL, Installed, Language, installed, is_other, languages
from transect.stats.comparisons import Confidence

# Against whom the goal stands.
_RIVAL = "numpy"


def language_findings(context: Context) -> list[Finding]:
    """Per equal cell: another language beside numpy; and per workload what has to be installed."""
    pairs = languages(context)
    return [
        *(_step(pair) for pair in pairs if _is_base(pair)),
        *(found for workload in context.workloads("train") if (found := _size(context, workload))),
    ]


def _is_base(pair: Language) -> bool:
    """Whether it is about the trainers themselves: alone, beside numpy. The others stand in the section."""
    return pair.in_python.cell.framework == _RIVAL and pair.group.cell.strategy == "single"


def installed_rows(context: Context, workload: str) -> list[Installed]:
    """Return the frameworks of a workload by size; none where no other language is among them."""
    rows = installed(context.of("train"), workload)
    frameworks = {row.group.cell.framework for row in rows}
    return rows if any(map(is_other, frameworks)) and not all(map(is_other, frameworks)) else []


def goal_words(pair: Language) -> str:
    """Say whether the goal was reached."""
    reached = pair.reached
    if reached is None:
        return "shares cores" if pair.result.over_subscribed else "not known"
    return "reached" if reached else "missed"


def _step(pair: Language) -> Finding:
    group, rival, result = pair.group, pair.in_python, pair.result
    name, other = (people_name(one.cell, [two.cell]) for one, two in ((group, rival), (rival, group)))
    relation = {"reached": "within", "missed": "beyond"}.get(goal_words(pair))
    goal = f"the goal of {factor(GOAL)} times"
    goal = f"{relation} {goal}" if relation else f"whether that is within {goal} is not known"
    used = [median_of(each, "cpu_utilisation") for each in (group, rival)]
    confidence = Confidence.INCONCLUSIVE
    if pair.reached is not None:
        # The interval that decides is beside the goal, whether or not it is beside 1.
        confidence = Confidence.CONFIRMED if result.sound else Confidence.PROVISIONAL
        confidence = limited_confidence(confidence, group, rival)
    return Finding(
        subject=str(group.cell.workload),
        kind="language",
        confidence=confidence,
        contrasts=(result,),
        scope=f"batch {group.cell.batch}, {count(group.cell.threads, 'thread')}",
        groups=(group, rival),
        claim=f"a step of {name} takes {ratio_words(result)} as long as {other}'s on equal work, {goal}.",
        evidence=joined(
            f"steps {quantity(median_of(group, 'step_time'), 's')} and {quantity(median_of(rival, 'step_time'), 's')}",
            f"CPU use {percent(used[0])} and {percent(used[1])}" if None not in used else "",
            _blas(pair),
            result.reason,
        ),
    )


def _blas(pair: Language) -> str:
    """Say what multiplies the matrices on both sides, where both tell."""
    blas = []
    for group in (pair.group, pair.in_python):
        libraries = group.ok[0].provenance.get("libraries") or {}
        blas.append(next((f"{name} {v}" for name, v in libraries.items() if "blas" in name.lower()), ""))
    return clean(f"BLAS {blas[0]} and {blas[1]}") if all(blas) else ""


def _size(context: Context, workload: str) -> Finding | None:
    rows = installed_rows(context, workload)
    if not rows:
        return None
    least = next(row for row in rows if is_other(row.group.cell.framework))
    others = [row for row in rows if not is_other(row.group.cell.framework)]
    listed = "; ".join(_words(row) for row in (least, *others))
    near = others[0]
    ratio = (near.bytes or 0.0) / (least.bytes or 1.0)
    return Finding(
        subject=workload,
        kind="installed",
        named=True,
        confidence=Confidence.CONFIRMED,
        claim=f"{clean(word('framework', least.group.cell.framework))} needs {count(int(least.files or 0), 'file')} of "
        f"{quantity(least.bytes, 'B')} before it trains on one rank, the least of the others, "
        f"{clean(word('framework', near.group.cell.framework))}, {count(int(near.files or 0), 'file')} of {quantity(near.bytes, 'B')}, "
        f"{number(ratio)} times as many bytes.",
        evidence=joined(
            f"to the end of the first step and resident before it: {listed}",
            "environments hold what this project pins, interpreter included; sizes are facts, times and memory medians",
        ),
    )


def _words(row: Installed) -> str:
    name = clean(word("framework", row.group.cell.framework))
    return f"{name} {quantity(row.first_step_s, 's')}, {quantity(row.at_rest, 'B')}"
