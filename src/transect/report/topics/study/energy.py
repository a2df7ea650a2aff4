"""What a training's energy comes to: for a sample, and to the target."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from transect.analysis.entries import AnyRecord, labels_of
from transect.analysis.groups import Group, grouped
from transect.analysis.labels import people_name
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import clean, count, quantity
from transect.stats.comparisons import Confidence

# The counter of Slurm's accounting: of a whole job step.
_STEP = "slurm step"


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """Medians over a group's repeats, in J, of one kind of counter (they may count joules twice).

    `to_quality_j` is None where a repeat did not reach the target.
    """

    group: Group
    counter: str
    per_sample_j: float
    to_quality_j: float | None


def uses(group: Group) -> list[Use]:
    """Return what each kind of counter says; empty where none could be read.

    A counter runs over the whole training loop: the samples are those of all its steps, and the target takes its share
    of the loop's time. Slurm's runs over the whole job step: what came before the loop counts for both.
    """
    found = []
    for label in sorted(set().union(*(labels_of(record, "energy") for record in group.ok))):
        per_sample = [v for r in group.ok if (v := _per_sample(r, label)) is not None]
        to_quality = [v for r in group.ok if (v := _to_quality(r, label)) is not None]
        if per_sample:
            whole = len(to_quality) == len(group.ok)
            found.append(
                Use(
                    group=group,
                    counter=label or "counter",
                    per_sample_j=statistics.median(per_sample),
                    to_quality_j=statistics.median(to_quality) if whole else None,
                )
            )
    return found


def _per_sample(record: AnyRecord, counter: str) -> float | None:
    joules, batch = record.value("energy", counter or None), record.details.get("global_batch")
    steps, epochs = record.details.get("steps_per_epoch"), record.parameters.get("epochs")
    known = (joules, batch, steps, epochs)
    if not all(isinstance(number, (int, float)) and number > 0 for number in known):
        return None
    return float(joules) / (float(batch) * float(steps) * float(epochs))  # type: ignore[arg-type]


def _to_quality(record: AnyRecord, counter: str) -> float | None:
    joules, loop = record.value("energy", counter or None), record.value("train_time")
    reached = record.value("time_to_quality")
    if joules is None or reached is None or not loop:
        return None
    step = record.details.get("step_energy")
    if counter == _STEP and isinstance(step, dict) and isinstance(step.get("seconds"), int | float):
        seconds = float(step["seconds"])
        # All but what came after the target.
        return joules * (1 - max(0.0, loop - reached) / seconds) if seconds > loop else None
    return joules * min(1.0, reached / loop)


def energy_findings(context: Context) -> list[Finding]:
    """Per workload and kind of counter: the least energy for a sample, and to the target."""
    records = [record for group in context.of("train") for record in group.ok]
    found = [finding for workload in context.workloads("train") for finding in _least(context, workload)]
    if found or not records:
        return found
    # Why Slurm's accounting gave none where it was asked.
    reported = [record.details["step_energy"] for record in records if "step_energy" in record.details]
    silences = {str(energy["missing"]) for energy in reported if isinstance(energy, dict) and "missing" in energy}
    nobody = "neither RAPL nor NVML could be read here" + (", and Slurm's accounting tells none" if reported else "")
    evidence = joined(
        "no estimate stands in its place",
        "" if reported else "its system file names no Slurm that counts it (`step_energy`)",
        clean(names(sorted(silences), 3)),
    )
    claim = f"the energy of training is not known: {nobody}."
    return [Finding(subject="study", claim=claim, evidence=evidence, confidence=Confidence.INCONCLUSIVE, kind="energy")]


def _least(context: Context, workload: str) -> Iterator[Finding]:
    groups = [g for g in context.of("train", workload) if g.ok and not g.wrong]
    used = [uses(group) for group in groups]
    silent = sum(not found for found in used)

    def name(use: Use) -> str:
        return people_name(use.group.cell, [group.cell for group in groups], always=("ranks",))

    of_kind = grouped((use for found in used for use in found), lambda use: use.counter)
    for counter, every in sorted(of_kind.items()):
        best = min(every, key=lambda use: (use.per_sample_j, use.group.cell.id))
        claim = f"{name(best)} takes least energy for a sample, {quantity(best.per_sample_j, 'J')}"
        if reached := [use for use in every if use.to_quality_j is not None]:
            least = min(reached, key=lambda use: (use.to_quality_j or 0.0, use.group.cell.id))
            claim += f"; {name(least)} takes least to the target, {quantity(least.to_quality_j, 'J')}"
        span = "over the whole job step" if counter == _STEP else "over the training loop"
        yield Finding(
            subject=workload,
            claim=claim + ".",
            evidence=joined(
                f"medians of the counter {counter}, of whole nodes, {span}",
                f"{count(len(every), 'cell')} tell it",
                f"{count(silent, 'cell')} do not" if silent else "",
            ),
            confidence=Confidence.PROVISIONAL,
            kind="energy",
            scope=f"by {counter}",
            groups=(best.group,),
            named=True,
        )
