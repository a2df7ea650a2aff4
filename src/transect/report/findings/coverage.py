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
    """Say what failed or was skipped, what is still to come, what was disturbed, and the noise."""
    return [*_coverage(context), *_pending(context), *_disturbed(context), *_noise(context)]


def _coverage(context: Context) -> list[Finding]:
    counts = by_status(context.records)
    total = sum(counts.values())
    if not total:
        evidence = count(len(context.problems), "problem") + " while reading the results"
        return [_fact("there is no record yet, so nothing can be said.", evidence, "coverage")]
    bad = context.not_ok
    if not bad and not context.problems:
        return []
    causes = Counter(str(record.cause.value) for record in bad if record.cause)
    listed = [f"{number} {cause}" for cause, number in causes.most_common()]
    skipped = f"{counts['skipped']} {'was' if counts['skipped'] == 1 else 'were'} skipped"
    claim = f"of {count(total, 'cell')}, {counts['failed']} failed and {skipped}."
    if context.problems:
        claim += f" {count(len(context.problems), 'place')} in the results could not be read."
    evidence = f"causes: {names(listed, 6)}" if listed else "see the list of problems"
    return [_fact(claim, evidence, "coverage")]


def _pending(context: Context) -> list[Finding]:
    """Say that the study is not done: what is said above holds for what is there."""
    running, waiting = len(context.loaded.running), len(context.loaded.waiting)
    if not running and not waiting:
        return []
    parts = [f"{running} running"] if running else []
    parts += [f"{waiting} not there yet"] if waiting else []
    claim = f"{count(running + waiting, 'cell')} still to come: {names(parts)}."
    evidence = "findings may change until their records are there"
    return [_fact(claim, evidence, "progress")]


def _disturbed(context: Context) -> list[Finding]:
    disturbed = [
        record.cell_id.split("~")[0]
        for record in context.records
        if record.stage in _TIMED and record.details.get("disturbed")
    ]
    if not disturbed:
        return []
    claim = (
        f"{count(len(disturbed), 'cell')} ran while other processes used the machine: "
        f"{names(disturbed)}."
    )
    evidence = "the interference guard saw foreign load before, during or after the run"
    return [_fact(claim, evidence, "noise")]


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
        claim = "no cell ran twice, so the noise is unknown and few differences can be called real."
        return [_fact(claim, "a noise floor needs repeats of the same cell", "noise")]
    claim = (
        f"repeats of the same cell differ by {names([part for part, _ in parts])}; "
        "smaller differences are not called differences."
    )
    pairs = sum(number for _, number in parts)
    return [_fact(claim, f"95th percentile of the ratios in {count(pairs, 'A/A pair')}", "noise")]


def _fact(claim: str, evidence: str, kind: str) -> Finding:
    return Finding(
        subject="study", claim=claim, evidence=evidence, sureness=Sureness.FIRM, kind=kind
    )
