"""The matrix of models by runtimes: at which point, compared with what, and how coarsely."""

from __future__ import annotations

from functools import partial
from typing import Any

from make_runtime_records import runs
from said_of_records import Made as Section

# The section that records make.
Made = partial(Section, "runtimes")


def test_prose(snapshot: Any) -> None:
    steps = {"clock_resolution_ns": 5000}
    assert (
        snapshot
        == Made(
            *runs("cpp", 1e-4),
            *runs("rust", 1e-4),
            *runs("browser", 2e-4, details=steps),
            *runs("cpp", 1e-4, precision="fp16", metrics={"max_abs_difference": 2e-3}),
        ).prose
    )


def test_a_pass_says_when_not_all_or_no_outputs_were_compared() -> None:
    partly = {"outputs_compared": 1, "outputs_expected": 2}
    none = [
        record.model_copy(update={"metrics": [m for m in record.metrics if m.name == "latency"]})
        for record in runs("go", 2e-4)
    ]
    made = Made(*runs("cpp", 1e-4), *runs("rust", 2e-4, details=partly), *none)
    [row] = made.table("Models by runtimes")
    assert (row["rust"], row["go"]) == ("✓ (1 of 2 outputs): 2", "not compared: 2")
    listed = {row["Runtime"]: row["Output"] for row in made.table("Outputs beside")}
    assert listed == {"cpp": "right", "rust": "1 of 2 outputs of tickets", "go": "not compared"}


def test_outputs_of_converted_files_stand_in_a_table_of_their_own() -> None:
    far = runs("cpp", 1e-4, precision="fp16", metrics={"max_abs_difference": 2e-3})
    made = Made(*runs("cpp", 1e-4), *runs("rust", 1e-4), *far)
    own = {row["Runtime"]: row for row in made.table("Outputs beside the framework's")}
    assert own["cpp"]["Largest absolute difference"] == "3e-7" and "rust" in own
    [other] = made.table("Outputs of converted files beside ONNX Runtime's own")
    assert (other["Runtime"], other["Largest absolute difference"]) == ("cpp", "0.002")


def test_a_runtime_that_ran_other_batches_alone_has_a_row_at_its_own_point() -> None:
    made = Made(
        *runs("cpp", 1e-4),
        *runs("rust", 2e-4),
        *runs("cpp", 4e-4, batch=8),
        *runs("rust", 4e-4, batch=8),
        *runs("java", 8e-4, batch=8),
    )
    first, second = made.table("Models by runtimes, on cpu")
    assert (first["At"], first["java"]) == ("batch 1, 1 thread", "–")
    assert (second["At"], second["cpp"]) == ("batch 8, 1 thread", "✓ 401 µs")
    assert (second["java"], second["rust"]) == ("✓ 2", "–"), "rust stands at its own point"


def test_a_point_without_cpp_has_times_and_a_baseline_stands_beside_each_export() -> None:
    made = Made(*runs("cpp", 1e-4), *runs("java", 8e-4, threads=2))
    assert [row["java"] for row in made.table("Models by runtimes")] == ["–", "✓ 802 µs"]
    made = Made(*runs("cpp", 1e-4), *runs("cpp", 4e-4, batch=8), *runs("torch-eager", 2e-3, batch=8))
    _, second = made.table("Models by runtimes")
    assert (second["torch-eager"], second["From"]) == ("✓ 5", "torch-dynamo")


def test_an_exporter_s_model_that_ran_elsewhere_is_not_left_out() -> None:
    made = Made(*runs("cpp", 1e-4), *runs("rust", 1e-4), *runs("rust", 5e-4, exporter="torchscript", batch=4))
    rows = made.table("Models by runtimes")
    assert [(row["From"], row["At"][:7]) for row in rows] == [("torch-dynamo", "batch 1"), ("torchscript", "batch 4")]


def test_a_ratio_by_a_clock_of_long_steps_is_marked() -> None:
    # A step of 5 us is a twentieth of 100 us, and a hundredth of 500 us.
    steps = {"clock_resolution_ns": 5000}
    fast = Made(*runs("cpp", 1e-4), *runs("rust", 1e-4), *runs("browser", 2e-4, details=steps))
    [row] = fast.table("Models by runtimes")
    assert (row["cpp"], row["rust"], row["browser"]) == ("✓ 100 µs", "✓ ≈ 1.000", "✓ 2†")
    assert "†" in fast.text
    slow = Made(*runs("cpp", 1e-4), *runs("browser", 5e-4, details=steps))
    assert slow.table("Models by runtimes")[0]["browser"] == "✓ 5" and "†" not in slow.text
    alone = Made(*runs("rust", 1e-4), *runs("browser", 2e-4, details=steps))
    assert alone.table("Models by runtimes")[0]["browser"] == "✓ 200 µs†"
