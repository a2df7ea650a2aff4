"""What the verdict may and may not say."""

from __future__ import annotations

from typing import Any

import pytest
from make_records import make_record

from transect.analysis.load import Loaded
from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Record, Status
from transect.report.context import Context
from transect.report.findings.finding import Finding
from transect.report.making import all_parts, make_findings


def findings(*records: Record) -> dict[str, Finding]:
    """Return the first finding of each kind."""
    context = Context(Loaded(study="s", records=list(records)), title="t")
    found: dict[str, Finding] = {}
    for one in make_findings(context, all_parts().findings):
        found.setdefault(one.kind, one)
    assert not context.problems
    return found


def runs(framework: str, times: list[float], *, ranks: int = 1, strategy: str = "single",
         **details: Any) -> list[Record]:  # fmt: skip
    """Synthetic repeats of a training cell that reach the target in `times` seconds."""
    made = []
    for repeat, time in enumerate(times):
        cell = Cell.of(stage="train", workload="w", framework=framework, strategy=strategy,
                    ranks_per_node=ranks, batch=64, repeat=repeat)  # fmt: skip
        quality = {"metric": "accuracy", "target": 0.9, "reached": time > 0}
        metrics = {
            "samples_per_second": 1000 / abs(time), "step_time": abs(time) / 100,
            "compute_time": abs(time) / 200, "communication_time": 0.0, "input_time": 0.0,
            "accuracy": 0.93, "equality_ratio": 0.5,
        }  # fmt: skip
        if time > 0:
            metrics["time_to_quality"] = time
        details = {"quality": quality, "global_batch": 64, **details}
        made.append(make_record(cell, metrics, details=details))
    return made


def test_a_clear_winner_is_named_with_time_quality_and_sureness() -> None:
    found = findings(*runs("torch", [1.0, 1.01, 1.02]), *runs("numpy", [2.0, 2.01, 2.02]))
    assert "torch · single · 1 rank reaches accuracy 0.9 soonest" in found["fastest"].text
    assert "1.99 times sooner than numpy" in found["fastest"].text
    assert "accuracy at the end 0.93" in found["fastest"].evidence
    assert found["fastest"].sureness == "firm"
    assert "ratio 0.502, 95 % interval 0." in found["fastest"].evidence
    [comparison] = found["fastest"].comparisons
    assert comparison.decision is not None and comparison.decision.p < 0.01


def test_two_repeats_make_it_tentative() -> None:
    found = findings(*runs("torch", [1.0, 1.01]), *runs("numpy", [2.0, 2.01]))
    assert found["fastest"].sureness == "tentative"
    assert "too few runs" in found["fastest"].evidence


def test_six_repeats_make_it_firm() -> None:
    fast, slow = [1 + i / 100 for i in range(6)], [2 + i / 100 for i in range(6)]
    assert findings(*runs("torch", fast), *runs("numpy", slow))["fastest"].sureness == "firm"


def test_below_the_noise_floor_nothing_is_faster() -> None:
    found = findings(
        *runs("torch", [1.0, 1.001, 1.002]), *runs("numpy", [1.01, 1.011, 1.012]),
        *runs("go", [3.0, 3.3, 3.1]),
    )  # fmt: skip
    assert "are the same within 5 %: the best median is 1 s" in found["fastest"].text
    assert "noise floor" in found["fastest"].evidence
    assert found["fastest"].sureness == "tentative" and "too few" in found["fastest"].evidence


def test_what_is_proved_the_same_is_firm_and_what_is_not_is_open() -> None:
    same = [[1.0, 1.003, 1.006], [1.002, 1.0, 1.003], [1.001, 1.005, 1.004]]
    every = [one for name, values in zip("abc", same, strict=True) for one in runs(name, values)]
    found = findings(*every)
    assert "are the same within 5 %" in found["fastest"].text
    assert found["fastest"].sureness == "firm" and len(found["fastest"].comparisons) == 2
    loud = [[1.0, 1.2, 1.1], [1.1, 1.0, 1.25], [1.05, 1.3, 1.0]]
    found = findings(*(one for n, v in zip("abc", loud, strict=True) for one in runs(n, v)))
    assert "cannot be told apart" in found["fastest"].text
    assert found["fastest"].sureness == "open"


def test_a_wrong_result_never_wins_however_it_is_marked() -> None:
    slow = runs("numpy", [2.0, 2.01, 2.02])
    marked = [
        record.model_copy(update={"status": Status.FAILED, "cause": Cause.WRONG_RESULT})
        for record in runs("mxnet", [0.1, 0.1, 0.1])
    ]
    outside = [
        record.model_copy(
            update={
                "metrics": [
                    one.model_copy(update={"value": 7.0}) if one.name == "equality_ratio" else one
                    for one in record.metrics
                ]
            }
        )
        for record in runs("torch", [0.1, 0.1, 0.1])
    ]
    found = findings(*slow, *marked, *outside)
    assert "numpy" in found["fastest"].text
    assert "2 for wrong result" in found["fastest"].evidence
    assert found["equality"].text.startswith("3 of 9")


def test_missing_the_target_once_keeps_a_cell_out_of_the_ranking() -> None:
    found = findings(*runs("torch", [1.0, -1.0, 1.0]), *runs("numpy", [2.0, 2.01, 2.02]))
    assert "numpy · single · 1 rank reaches" in found["fastest"].text
    assert "target missed" in found["fastest"].evidence


def test_no_target_reached_means_no_winner() -> None:
    found = findings(*runs("torch", [-1.0, -1.0]))
    assert "no speed is compared" in found["fastest"].text


def test_an_over_subscribed_cell_carries_no_claim() -> None:
    found = findings(
        *runs("torch", [2.0, 2.01, 2.02]),
        *runs("torch", [0.5, 0.51, 0.52], ranks=8, strategy="ddp", over_subscribed=True),
    )
    assert "scaling" not in found
    assert "1 rank reaches" in found["fastest"].text
    assert "more ranks than cores" in found["fastest"].evidence


def test_superlinear_speed_is_flagged() -> None:
    found = findings(
        *runs("torch", [4.0, 4.01, 4.02]), *runs("torch", [1.0, 1.01], ranks=2, strategy="ddp")
    )
    assert "above 100 %" in found["suspect"].text
    assert found["suspect"].sureness == "open"


def test_disturbed_runs_are_never_firm() -> None:
    fast, slow = [1 + i / 100 for i in range(6)], [2 + i / 100 for i in range(6)]
    found = findings(*runs("torch", fast, disturbed=True), *runs("numpy", slow))
    assert found["fastest"].sureness == "tentative"


SHARP = [{"step": 40, "steps": 4, "ratio": 0.02, "sharp": True}]
DULL = [*SHARP, {"step": 80, "steps": 4, "ratio": 0.0, "sharp": False}]


@pytest.mark.parametrize("restarts", [[], DULL])
def test_what_goes_blind_before_its_target_is_not_ranked(restarts) -> None:
    """It is much faster: a trainer that no longer updates would be."""
    fast, slow = [1 + i / 100 for i in range(6)], [2 + i / 100 for i in range(6)]
    blind = {"not_checkable_from": 30, "restarts": restarts}
    found = findings(*runs("torch", fast, **blind), *runs("numpy", slow))
    assert "numpy · single · 1 rank reaches" in found["fastest"].text
    assert "1 for not checkable until the target" in found["fastest"].evidence
    assert found["equality"].sureness == "tentative"
    assert "could be checked only up to a step of the run" in found["equality"].text
    alone = findings(*runs("torch", fast, **blind))
    assert "before its check went blind, so no speed is compared" in alone["fastest"].text


@pytest.mark.parametrize("blind", ["torch", "numpy"])
def test_restarts_let_a_blind_cell_be_ranked_but_never_firmly(blind) -> None:
    fast, slow = [1 + i / 100 for i in range(6)], [2 + i / 100 for i in range(6)]
    details = {"not_checkable_from": 30, "restarts": SHARP}
    of = {name: details if name == blind else {} for name in ("torch", "numpy")}
    found = findings(*runs("torch", fast, **of["torch"]), *runs("numpy", slow, **of["numpy"]))
    assert "torch · single · 1 rank reaches" in found["fastest"].text
    assert found["fastest"].sureness == "tentative"
    told = "its loss could be checked until step 30"
    assert (told in found["fastest"].evidence) == (blind == "torch")


def test_a_restart_that_leaves_its_tolerance_is_a_wrong_result() -> None:
    records = [*runs("torch", [1.0, 1.01]), *runs("numpy", [2.0, 2.01])]
    records[0].metrics.append(MetricValue.of("restart_ratio", 1.5))
    found = findings(*records)
    assert "numpy · single · 1 rank reaches" in found["fastest"].text
    assert found["equality"].text.startswith("3 of 4")


def test_other_hardware_is_named_beside_a_comparison() -> None:
    other = [
        record.model_copy(update={"provenance": {**record.provenance, "host": "elsewhere"}})
        for record in runs("numpy", [2.0, 2.01, 2.02])
    ]
    found = findings(*runs("torch", [1.0, 1.01, 1.02]), *other)
    assert "differ in host" in found["fastest"].evidence


@pytest.mark.parametrize(
    ("difference", "agreement", "text"),
    [(1e-7, 1.0, "The one ONNX export computes"), (1e-2, 1.0, "0 of 1"), (1e-7, 0.98, "0 of 1")],
)
def test_an_export_is_judged_by_numbers(difference: float, agreement: float, text: str) -> None:
    cell = Cell.of(stage="export", workload="w", framework="torch", exporter="dynamo")
    metrics = {"max_abs_difference": difference, "top1_agreement": agreement}
    found = findings(make_record(cell, metrics, details={"tolerance": 1e-5}))
    assert found["export"].text.startswith(text)


def infer(runtime: str, latency: float, agreement: float = 1.0) -> list[Record]:
    """Three synthetic repeats of an inference cell."""
    return [
        make_record(
            Cell.of(stage="infer", workload="w", exporter="dynamo",
                 runtime=runtime, provider="cpu", batch=1, repeat=repeat),
            {"latency": latency * (1 + repeat / 1000), "throughput": 1 / latency,
             "top1_agreement": agreement},
        )
        for repeat in range(3)
    ]  # fmt: skip


def test_a_runtime_with_other_outputs_never_serves_best() -> None:
    found = findings(*infer("rust", 1e-6, agreement=0.9), *infer("python", 2e-5), *infer("c", 4e-5))
    assert "python" in found["runtime"].text
    assert "2 times better than c" in found["runtime"].text


def test_a_clean_study_reports_no_failures_and_an_empty_one_says_so() -> None:
    assert "coverage" not in findings(*runs("torch", [1.0, 1.1]))
    assert "no record yet" in findings()["coverage"].text


def test_a_start_that_takes_all_longer_hides_no_winner() -> None:
    # The third start takes twice the epochs for everybody, so that the ranges overlap.
    rivals = [runs(name, [t, 1.01 * t, 2 * t]) for name, t in (("a", 5), ("b", 6), ("c", 7))]
    found = findings(
        *runs("torch", [1.0, 1.01, 2.02]), *runs("numpy", [1.5, 1.52, 3.0]),
        *(record for some in rivals for record in some),
    )  # fmt: skip
    assert (
        "torch · single · 1 rank reaches accuracy 0.9 soonest, in 1.01 s" in found["fastest"].text
    )
    assert "3 seeds, each with itself" in found["fastest"].evidence


def test_cells_are_ranked_by_the_starts_that_all_ran() -> None:
    # The two later starts of torch take longer; numpy ran only the first.
    rivals = [runs(name, [t, 2 * t, 2 * t]) for name, t in (("a", 5.0), ("b", 6.0), ("c", 7.0))]
    found = findings(
        *runs("torch", [1.0, 2.0, 2.0]), *runs("numpy", [1.5]),
        *(record for some in rivals for record in some),
    )  # fmt: skip
    assert "torch · single · 1 rank reaches accuracy 0.9 soonest, in 1 s" in found["fastest"].text
    assert "median of 1 run, the starts that all cells ran" in found["fastest"].evidence
