"""Energy, and how comparisons are counted and corrected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from make_records import make_record
from said_of_records import context, prose

from factories import train_cell
from transect.analysis.groups import group_records
from transect.domain.record import MetricValue, Record
from transect.report.engine.collect import make_findings
from transect.report.engine.deciding import corrected, tally_of
from transect.report.engine.finding import Finding
from transect.report.engine.parts import all_parts
from transect.report.topics.study.energy import Use, uses
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Chance


def trainings(joules: float | None) -> list[Record]:
    made = []
    for framework, times in (("torch", 1.0), ("numpy", 2.0)):
        for repeat in range(3):
            cell = train_cell(framework, repeat, workload="w", batch=10)
            metrics = {
                "samples_per_second": 100 / times,
                "step_time": times / 10,
                "accuracy": 0.9,
                "train_time": 10 * times,
                "time_to_quality": 5 * times,
                "equality_ratio": 0.1,
            }
            record = make_record(cell, metrics, details={"global_batch": 10, "steps_per_epoch": 5}).model_copy(
                update={"parameters": {"epochs": 4}}
            )
            if joules is not None:
                energy = MetricValue.of("energy", joules * times, label="rapl package")
                record.metrics.append(energy)
            made.append(record)
    return made


def of_steps(joules: float | None) -> list[Record]:
    """Trainings whose energy is that of a whole job step of 20 s, or is missing there."""
    made = trainings(joules)
    energy = {"seconds": 20.0} if joules else {"missing": "sacct tells no energy of the step <b>7.1"}
    for record in made:
        record.details["step_energy"] = energy
        for metric in list(record.metrics):
            if metric.name == "energy":
                record.metrics.remove(metric)
                record.metrics.append(MetricValue.of("energy", metric.value, label="slurm step"))
    return made


def test_slurms_energy_is_that_of_a_whole_step() -> None:
    def used(records: list[Record]) -> Use:
        [use] = next(uses(group) for group in group_records(records) if group.cell.framework == "torch")
        return use

    # 400 J over 10 x 5 x 4 samples; the target in half of the loop's time.
    loop, step = used(trainings(400.0)), used(of_steps(400.0))
    assert (loop.counter, loop.per_sample_j, loop.to_quality_j) == ("rapl package", 2.0, 200.0)
    # Of 20 s all but the 5 after the target, whatever came before the loop.
    assert (step.per_sample_j, step.to_quality_j) == pytest.approx((2.0, 300.0))


def test_prose(snapshot: Any) -> None:
    energies = {
        "of the loop": trainings(400.0),
        "told by nothing": trainings(None),
        "of a job step": of_steps(400.0),
        "Slurm tells none": of_steps(None),
    }
    assert prose(energies, "energy") == snapshot


def _finding(*tests: Chance, claim: str = "it is so.") -> Finding:
    return Finding(
        subject="w",
        claim=claim,
        evidence="e",
        confidence=Confidence.CONFIRMED,
        kind="k",
        tests=tests,
        rule="training.k",
    )


def test_tests_are_counted_and_one_of_very_many_is_not_confirmed() -> None:
    study = context(asks=["training.k"])
    [held] = corrected([_finding(Chance(p=0.04))], study)
    assert held.confidence is Confidence.CONFIRMED
    [held, _] = corrected([_finding(Chance(p=0.04)), _finding(Chance(p=0.04))], study)
    assert held.confidence is Confidence.PROVISIONAL and "0.08 (Holm)" in held.evidence
    # One that claims nothing only counts.
    unclaimed = tuple(Chance(p=0.5, claimed=False) for _ in range(9))
    [held] = corrected([_finding(Chance(p=0.01), *unclaimed)], study)
    assert held.confidence is Confidence.PROVISIONAL and "of 10 comparisons" in held.evidence


def test_a_study_of_sure_tests_alone_is_counted_as_one_of_differences() -> None:
    study = context(asks=["training.k"])
    found = corrected([_finding(Chance(p=0.001)), _finding(Chance(p=0.002), Chance(p=0.5, claimed=False))], study)
    tally = tally_of(found, study)
    assert tally.asked is not None and tally.asked == replace(tally, asked=None)
    assert (tally.comparisons, tally.different, tally.inconclusive) == (3, 2, 1)


def test_only_what_a_question_asks_for_is_sure_and_counts() -> None:
    study = context(asks=["training.fastest"])
    asked = replace(_finding(Chance(p=0.04)), rule="training.fastest")
    others = [_finding(Chance(p=0.001)) for _ in range(9)]
    held, *rest = corrected([asked, *others], study)
    assert held.confidence is Confidence.CONFIRMED, "nobody asked for the nine"
    assert {found.confidence for found in rest} == {Confidence.PROVISIONAL}
    assert all("no question" in found.evidence for found in rest)
    tally = tally_of([held, *rest], study)
    assert (tally.comparisons, tally.provisional) == (10, 9) and tally.asked is not None
    assert (tally.asked.comparisons, tally.asked.different) == (1, 1)


def test_contrasts_count_and_nothing_is_sure_while_cells_are_to_come() -> None:
    records = trainings(None)
    study = context(*records)
    made = make_findings(study, all_parts().findings)
    tally = tally_of(made, study)
    assert tally.comparisons >= len({*study.contrasts}) >= 1 and tally.different >= 1
    # A fact without any test is not sure either, as long as cells of its workload are missing.
    fact = replace(_finding(), subject="iris-mlp", stages=("train",))
    study.loaded.waiting.append(("train", "iris-mlp.torch.single~0"))
    [held] = corrected([fact], study)
    assert held.confidence is Confidence.PROVISIONAL and "still to come" in held.evidence
    study.loaded.waiting[:] = [("train", "other.torch.single~0")]
    assert corrected([fact], study) == [fact]
