"""Findings on the study itself: what is missing, what was disturbed, how noisy it was."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from transect.analysis.kinds import main_kind
from transect.analysis.load import by_status
from transect.domain.record import Status
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import count, percent
from transect.stats.comparisons import Confidence
from transect.stats.samples import NoiseFloor

# Stages whose times are compared: what disturbs another one does no harm.
_TIMED = ("train", "infer", "bench")

# What findings compare, and in which words.
_FLOORS = (
    ("train", "samples_per_second", "training speed"),
    ("train", "step_time", "step time"),
    ("train", "time_to_quality", "time to quality (compared seed by seed)"),
    ("infer", "latency", "latency"),
    ("infer", "throughput", "throughput"),
    ("retrain", "step_time", "the step of a retraining"),
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
    evidence = f"causes: {names(listed, len(listed))}" if listed else "see the list of problems"
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
    ran = [r for r in context.records if r.stage in _TIMED and r.status is not Status.SKIPPED]
    disturbed = [record for record in ran if record.details.get("disturbed")]
    if not disturbed:
        return []
    cells = {record.point: record.cell_id.split("~")[0] for record in disturbed}
    claim = (
        f"{len(disturbed)} of {count(len(ran), 'run')} met other processes on the machine, those of "
        f"{count(len(cells), 'cell')}: {names(list(cells.values()))}."
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
            listed.append(f"{what}: {', '.join(floor.text for floor in floors)}")
            pairs += sum(floor.value.pairs for floor in floors if floor.repeated)
    if not parts:
        if not any(group.ok for stage, *_ in _FLOORS for group in context.of(stage)):
            return []
        claim = "no cell ran twice, so the noise is unknown and few differences can be called real."
        return [_fact(claim, "a noise floor needs repeats of the same cell", "noise")]
    claim = (
        f"repeats of the same cell differ by {names(parts, len(parts))}; what they differ by together "
        "decides which differences count."
    )
    evidence = (
        f"95th percentile of the ratios in {count(pairs, 'A/A pair')}, of undisturbed runs where any cell has two"
    )
    return [_fact(claim, joined(evidence, *listed), "noise")]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Floor:
    """A workload's floor. `repeated`: from its own repeats; else it is that of the others."""

    workload: str
    value: NoiseFloor
    repeated: bool

    @property
    def text(self) -> str:
        lent = "" if self.repeated else " (from other workloads: it has no repeats)"
        return f"{self.workload} {percent(self.value.relative, 1)}{lent}"


def _floors(context: Context, stage: str, metric: str) -> list[_Floor]:
    """Return the floor of each workload with usable cells, as the findings on it ask for it."""
    found = []
    for workload in context.workloads(stage):
        groups = context.of(stage, workload)
        kind = main_kind(groups) if stage == "train" else None
        if kind is not None and metric == "time_to_quality":
            floor = context.floors.paired(stage, workload, metric, kind)
        else:
            floor = context.floors.get(stage, workload, metric, kind)
        if floor is not None and any(group.values(metric) for group in groups):
            repeated = any(len(g.values(metric)) > 1 and not g.over_subscribed for g in groups)
            found.append(_Floor(workload=workload, value=floor, repeated=repeated))
    return found


def _span(floors: list[_Floor]) -> str:
    """Write the smallest and the largest floor with their workloads; one alone needs no name."""
    low, high = (choose(floors, key=lambda floor: floor.value.relative) for choose in (min, max))
    if low.value.relative == high.value.relative:
        return percent(low.value.relative, 1)
    ends = [f"{percent(end.value.relative, 1)} ({end.workload})" for end in (low, high)]
    return " to ".join(ends)


def _fact(claim: str, evidence: str, kind: str) -> Finding:
    return Finding(subject="study", claim=claim, evidence=evidence, confidence=Confidence.CONFIRMED, kind=kind)
