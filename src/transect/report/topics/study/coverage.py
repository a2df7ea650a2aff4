"""Findings on the study itself: what is missing, what was disturbed, how noisy it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

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
    ("train", "step_time", "the time of a training step"),
    ("train", "time_to_quality", "the time to the target, start by start"),
    ("infer", "latency", "the time of a call"),
    ("retrain", "step_time", "the time of a step of retraining"),
)
# Of fewer pairs of runs nothing is said of how far runs of one cell are apart.
_MIN_PAIRS = 6


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
    causes = Counter(str(record.cause.value).replace("-", " ") for record in bad if record.cause)
    listed = [f"{number} {cause}" for cause, number in causes.most_common()]
    parts = [f"{counts[status]} {status}" for status in ("failed", "skipped") if counts[status]]
    claim = f"{counts['ok']} of {count(total, 'cell')} gave a result{'; ' if parts else ''}{names(parts)}."
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
    """Say how many of the runs that took place shared the machine: what was skipped has no time."""
    ran = [r for r in context.records if r.stage in _TIMED and r.status is not Status.SKIPPED]
    disturbed = [record for record in ran if record.details.get("disturbed")]
    if not disturbed:
        return []
    if len(disturbed) == len(ran):
        claim = (
            f"all {count(len(ran), 'run')} shared the machine with other programs: every time is too high, and no "
            "difference is sure; run again on a quiet machine."
        )
    else:
        claim = f"other programs were at work in {len(disturbed)} of {count(len(ran), 'run')}: these enter no comparison that has three others."
    evidence = joined(
        "the guard saw foreign load before, during or after the run",
        names(list(dict.fromkeys(record.cell_id for record in disturbed)), 3),
    )
    return [_fact(claim, evidence, "noise")]


def _noise(context: Context) -> list[Finding]:
    """Say by how much runs of the same cell differ: for each metric the workload in which they do most."""
    parts: list[str] = []
    listed: list[str] = []
    for stage, metric, what in _FLOORS:
        floors = list(_floors(context, stage, metric))
        for workload, floor, repeated in floors:
            pairs = count(floor.pairs, "pair") + ("" if repeated else ", of other workloads")
            listed.append(f"{what}, {workload} {percent(floor.relative, 1)} ({pairs})")
        if known := [found for found in floors if found[1].pairs >= _MIN_PAIRS]:
            workload, widest, _ = max(known, key=lambda found: found[1].relative)
            parts.append(f"{percent(widest.relative)} in {what} ({workload})")
    if parts:
        evidence = "95th percentile of the ratios of two undisturbed runs of a cell"
        return [
            _fact(f"two runs of the same cell differ by up to {names(parts, 9)}.", joined(evidence, *listed), "noise")
        ]
    if not any(group.ok for stage, *_ in _FLOORS for group in context.of(stage)):
        return []
    claim = "how far runs of the same cell are apart is not known: too few ran twice and undisturbed."
    return [_fact(claim, joined("a difference needs three runs a side", *listed), "noise", Confidence.INCONCLUSIVE)]


def _floors(context: Context, stage: str, metric: str) -> Iterator[tuple[str, NoiseFloor, bool]]:
    """Yield the floor of each workload with usable cells, as the findings on it ask for it, and whether it is its own."""
    for workload in context.workloads(stage):
        groups = context.of(stage, workload)
        kind = main_kind(groups) if stage == "train" else None
        if kind is not None and metric == "time_to_quality":
            floor = context.floors.paired(stage, workload, metric, kind)
        else:
            floor = context.floors.get(stage, workload, metric, kind)
        if floor is not None and any(group.values(metric) for group in groups):
            yield workload, floor, any(len(g.values(metric)) > 1 and not g.over_subscribed for g in groups)


def _fact(claim: str, evidence: str, kind: str, confidence: Confidence = Confidence.CONFIRMED) -> Finding:
    return Finding(subject="study", claim=claim, evidence=evidence, confidence=confidence, kind=kind)
