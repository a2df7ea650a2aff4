"""Drift of the machine, energy, and how comparisons are counted and corrected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from make_records import make_record
from said_of_records import context, only, prose

from factories import infer_cell, train_cell
from transect.analysis.groups import group_records
from transect.domain.record import MetricValue, Record
from transect.domain.study import Question
from transect.report.engine.collect import make_findings
from transect.report.engine.deciding import corrected, tally_of
from transect.report.engine.parts import all_parts
from transect.report.topics.study.drift_facts import drift_of
from transect.report.topics.study.energy import Use, uses
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Answer, Chance


def latencies(slope: float, cells: int = 4, repeats: int = 6, spread: float = 0.001) -> list[Record]:
    """Cells in rounds, each run `slope` slower than the first round by the last one."""
    made = []
    for repeat in range(repeats):
        for number in range(cells):
            cell = infer_cell(f"r{number}", repeat, workload="w", exporter="dynamo")
            off = spread * (-1) ** (number + repeat)
            time = 1e-4 * (1 + number) * (1 + slope * repeat / (repeats - 1) + off)
            record = make_record(cell, {"latency": time, "throughput": 1 / time})
            started = f"2026-01-01T00:{repeat:02d}:{number:02d}+00:00"
            made.append(record.model_copy(update={"started": started, "ended": started}))
    return made


def apart() -> list[Record]:
    """Cells that move against each other: they tell nothing of the machine."""
    return [
        record.model_copy(
            update={
                "metrics": [
                    MetricValue.of(
                        "latency",
                        record.metrics[0].value
                        * (1 + 0.3 * (record.cell.repeat > 3) * (-1) ** int(record.cell.runtime[1:])),
                    )
                ]
            }
        )
        for record in latencies(0.03, spread=0.25)
    ]


DRIFTS = {"slower": latencies(0.3), "faster": latencies(-0.2), "same": latencies(0.0), "apart": apart()}


@pytest.mark.parametrize(
    ("name", "answer", "ratio", "confidence"),
    [
        ("slower", Answer.DIFFERENT, 1.23, "confirmed"),
        ("faster", Answer.DIFFERENT, 0.82, "confirmed"),
        ("same", Answer.SAME, 1.0, "confirmed"),
        ("apart", Answer.OPEN, 0.98, "inconclusive"),
    ],
)
def test_the_last_third_is_held_beside_the_first(name: str, answer: Answer, ratio: float, confidence: str) -> None:
    drift = drift_of(group_records(DRIFTS[name]), "latency")
    assert drift is not None and (drift.cells, drift.runs) == (4, 24)
    assert drift.decision.answer is answer
    assert drift.decision.ratio == pytest.approx(ratio, abs=0.02)
    found = only("drift", *DRIFTS[name])
    assert found.confidence == confidence and "4 cells" in found.evidence
    assert [test.claimed for test in found.tests] == [answer is not Answer.OPEN]


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
    assert prose(DRIFTS, "drift") | prose(energies, "energy") == snapshot


def test_comparisons_are_counted_and_one_of_very_many_is_not_confirmed() -> None:
    made = make_findings(context(*trainings(None)), all_parts().findings)
    tally = tally_of(made)
    assert tally.comparisons >= 1 and tally.different >= 1 and tally.inconclusive == 0
    asked = [Question(ask="who?", answered_by=["training.fastest"]), Question(ask="why?")]
    asked_tally = tally_of(made, asked).asked
    assert tally.asked is None and asked_tally is not None and 1 == asked_tally.comparisons <= tally.comparisons
    [fastest] = [finding for finding in made if finding.kind == "fastest"]
    [comparison] = fastest.comparisons
    assert comparison.decision is not None
    chance = replace(comparison, decision=replace(comparison.decision, p=0.01))
    confirmed = replace(fastest, confidence=Confidence.CONFIRMED, comparisons=(chance,))
    others = [
        replace(confirmed, comparisons=(replace(chance, decision=replace(comparison.decision, p=0.5 + n / 100)),))
        for n in range(9)
    ]
    [alone] = corrected([confirmed])
    assert alone.confidence is Confidence.CONFIRMED
    beside, *_ = corrected([confirmed, *others])
    assert beside.confidence is Confidence.PROVISIONAL and "of 10 comparisons" in beside.evidence
    # One that is said to be open claims nothing, however many there are.
    open_one = replace(comparison, decision=replace(comparison.decision, p=0.9, answer=Answer.OPEN))
    [held, *_] = corrected([replace(fastest, confidence=Confidence.CONFIRMED, comparisons=(comparison, open_one))])
    assert held.confidence is Confidence.CONFIRMED
    # Tests that compare no two groups are of the same family; one that claims nothing only counts.
    unclaimed = tuple(Chance(p=0.5, claimed=False) for _ in range(9))
    [held] = corrected([replace(confirmed, tests=unclaimed)])
    assert held.confidence is Confidence.PROVISIONAL and "of 10 comparisons" in held.evidence
    shift = replace(confirmed, comparisons=(), tests=(Chance(p=0.04),))
    [held] = corrected([shift])
    assert held.confidence is Confidence.CONFIRMED
    [held, _] = corrected([shift, replace(shift, tests=(Chance(p=0.04),))])
    assert held.confidence is Confidence.PROVISIONAL and "0.08 (Holm)" in held.evidence
    # One of ranks alone, as of values that may be 0, has a probability too.
    ranks = replace(comparison, decision=None, p=0.03)
    of_ranks = replace(confirmed, comparisons=(ranks,))
    assert corrected([of_ranks])[0].confidence is Confidence.CONFIRMED
    assert corrected([replace(of_ranks, tests=unclaimed)])[0].confidence is Confidence.PROVISIONAL
