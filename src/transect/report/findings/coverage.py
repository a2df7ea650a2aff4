"""Findings on the study itself: what is missing, what was disturbed, how noisy it was."""

from __future__ import annotations

from collections import Counter

from transect.analysis.comparisons import Sureness
from transect.analysis.load import by_status
from transect.report.context import Context
from transect.report.findings.finding import Finding, names
from transect.report.text import count, percent

__all__ = ["coverage_findings"]

# Stages whose times are compared: what disturbs another one does no harm.
_TIMED = ("train", "infer", "bench")


def coverage_findings(context: Context) -> list[Finding]:
    """Say what failed or was skipped, what was disturbed, and the noise floor."""
    return [*_coverage(context), *_disturbed(context), *_noise(context)]


def _coverage(context: Context) -> list[Finding]:
    counts = by_status(context.records)
    total = sum(counts.values())
    if not total:
        text = "There is no record yet, so nothing can be said."
        evidence = count(len(context.problems), "problem") + " while reading the results"
        return [_fact(text, evidence, "coverage")]
    bad = context.not_ok()
    if not bad and not context.problems:
        return []
    causes = Counter(str(record.cause.value) for record in bad if record.cause)
    listed = [f"{number} {cause}" for cause, number in causes.most_common()]
    skipped = f"{counts['skipped']} {'was' if counts['skipped'] == 1 else 'were'} skipped"
    text = f"Of {count(total, 'cell')}, {counts['failed']} failed and {skipped}."
    if context.problems:
        text += f" {count(len(context.problems), 'place')} in the results could not be read."
    evidence = f"causes: {names(listed, 6)}" if listed else "see the list of problems"
    return [_fact(text, evidence, "coverage")]


def _disturbed(context: Context) -> list[Finding]:
    disturbed = [
        record.cell_id.split("~")[0]
        for record in context.records
        if record.stage in _TIMED and record.details.get("disturbed")
    ]
    if not disturbed:
        return []
    text = (
        f"{count(len(disturbed), 'cell')} ran while other processes used the machine: "
        f"{names(disturbed)}."
    )
    evidence = "the interference guard saw foreign load before, during or after the run"
    return [_fact(text, evidence, "noise")]


def _noise(context: Context) -> list[Finding]:
    parts = []
    for stage, name, what in (
        ("train", "samples_per_second", "training speed"),
        ("train", "time_to_quality", "time to quality (seeds differ; compared seed by seed)"),
        ("infer", "latency", "latency"),
    ):
        floor = context.floors.get(stage, None, name)
        if floor is not None:
            parts.append((f"{percent(floor.relative, 1)} in {what}", floor.pairs))
    if not parts:
        if not any(group.ok for stage in ("train", "infer") for group in context.of(stage)):
            return []
        text = "No cell ran twice, so the noise is unknown and few differences can be called real."
        return [_fact(text, "a noise floor needs repeats of the same cell", "noise")]
    text = (
        f"Repeats of the same cell differ by {names([part for part, _ in parts])}; "
        "smaller differences are not called differences."
    )
    pairs = sum(number for _, number in parts)
    return [_fact(text, f"95th percentile of the ratios in {count(pairs, 'A/A pair')}", "noise")]


def _fact(text: str, evidence: str, kind: str) -> Finding:
    return Finding(text=text, evidence=evidence, sureness=Sureness.FIRM, kind=kind, about="study")
