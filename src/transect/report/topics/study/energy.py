"""What a training's energy comes to: for a sample, and to the target."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from transect.analysis.entries import AnyRecord, labels_of
from transect.analysis.groups import Group

# The counter of Slurm's accounting: of a whole job step.
STEP = "slurm step"


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
    labels = set().union(*(labels_of(record, "energy") for record in group.ok))
    counters = sorted(label or "counter" for label in labels)
    found = []
    for counter in counters:
        label = None if counter == "counter" else counter
        per_sample = [v for r in group.ok if (v := _per_sample(r, label)) is not None]
        to_quality = [v for r in group.ok if (v := _to_quality(r, label)) is not None]
        if per_sample:
            whole = len(to_quality) == len(group.ok)
            found.append(
                Use(
                    group=group,
                    counter=counter,
                    per_sample_j=statistics.median(per_sample),
                    to_quality_j=statistics.median(to_quality) if whole else None,
                )
            )
    return found


def _per_sample(record: AnyRecord, counter: str | None) -> float | None:
    joules, batch = record.value("energy", counter), record.details.get("global_batch")
    steps, epochs = record.details.get("steps_per_epoch"), record.parameters.get("epochs")
    known = (joules, batch, steps, epochs)
    if not all(isinstance(number, (int, float)) and number > 0 for number in known):
        return None
    return float(joules) / (float(batch) * float(steps) * float(epochs))  # type: ignore[arg-type]


def _to_quality(record: AnyRecord, counter: str | None) -> float | None:
    joules, loop = record.value("energy", counter), record.value("train_time")
    reached = record.value("time_to_quality")
    if joules is None or reached is None or not loop:
        return None
    step = record.details.get("step_energy")
    if counter == STEP and isinstance(step, dict) and isinstance(step.get("seconds"), int | float):
        seconds = float(step["seconds"])
        # All but what came after the target.
        return joules * (1 - max(0.0, loop - reached) / seconds) if seconds > loop else None
    return joules * min(1.0, reached / loop)


def silences(records: Iterable[AnyRecord]) -> list[str]:
    """Return why Slurm's accounting gave no energy where it was asked for, each reason once."""
    reported = (record.details.get("step_energy") for record in records)
    return sorted({str(energy["missing"]) for energy in reported if isinstance(energy, dict) and "missing" in energy})
