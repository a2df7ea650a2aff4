"""Findings on the study itself: what is missing, what was disturbed, how noisy it was."""

from __future__ import annotations

from collections import Counter

from transect.analysis.comparisons import Sureness
from transect.analysis.kinds import main_kind
from transect.analysis.load import by_status
from transect.analysis.statistics import NoiseFloor
from transect.report.context import Context
from transect.report.findings.finding import Finding, joined, names
from transect.report.text import count, percent

__all__ = ["coverage_findings"]

# Stages whose times are compared: what disturbs another one does no harm.
_TIMED = ("train", "infer", "bench")

# What findings compare, and in which words.
_FLOORS = (
    ("train", "samples_per_second", "training speed"),
    ("train", "step_time", "step time"),
    ("train", "time_to_quality", "time to quality (compared seed by seed)"),
    ("infer", "latency", "latency"),
    ("infer", "throughput", "throughput"),
)


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
    """Say the floors that findings go by: one per workload and metric, of its main training."""
    parts: list[str] = []
    listed: list[str] = []
    pairs = 0
    for stage, metric, what in _FLOORS:
        floors = _floors(context, stage, metric)
        if floors:
            parts.append(f"{_span(floors)} in {what}")
            told = (f"{name} {percent(floor.relative, 1)}" for name, floor in floors.items())
            listed.append(f"{what}: {', '.join(told)}")
            pairs += sum({id(floor): floor.pairs for floor in floors.values()}.values())
    if not parts:
        if not any(group.ok for stage in ("train", "infer") for group in context.of(stage)):
            return []
        claim = "no cell ran twice, so the noise is unknown and few differences can be called real."
        return [_fact(claim, "a noise floor needs repeats of the same cell", "noise")]
    claim = (
        f"repeats of the same cell differ by {names(parts, len(parts))}; smaller differences in the "
        "same workload are not called differences."
    )
    evidence = f"95th percentile of the ratios in {count(pairs, 'A/A pair')}"
    return [_fact(claim, joined(evidence, *listed), "noise")]


def _floors(context: Context, stage: str, metric: str) -> dict[str, NoiseFloor]:
    """Return the floor of each workload with usable cells, as the findings on it ask for it."""
    found = {}
    for workload in context.workloads(stage):
        groups = [group for group in context.of(stage, workload) if group.ok]
        if not groups:
            continue
        if stage != "train":
            floor = context.floors.get(stage, workload, metric)
        elif metric == "time_to_quality":
            floor = context.floors.paired(stage, workload, metric, main_kind(groups))
        else:
            floor = context.floors.get(stage, workload, metric, main_kind(groups))
        if floor is not None:
            found[workload] = floor
    return found


def _span(floors: dict[str, NoiseFloor]) -> str:
    """Write the smallest and the largest floor with their workloads; one alone needs no name."""
    low, high = (choose(floors.items(), key=lambda item: item[1].relative) for choose in (min, max))
    if low[1].relative == high[1].relative:
        return percent(low[1].relative, 1)
    return f"{percent(low[1].relative, 1)} ({low[0]}) to {percent(high[1].relative, 1)} ({high[0]})"


def _fact(claim: str, evidence: str, kind: str) -> Finding:
    return Finding(
        subject="study", claim=claim, evidence=evidence, sureness=Sureness.FIRM, kind=kind
    )
