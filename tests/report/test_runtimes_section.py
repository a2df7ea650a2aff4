"""The section on runtimes: what stands in it, what does not, and by which time."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from make_runtime_records import (
    CRASH,
    WRONG,
    conditions,
    fourteen_models,
    infer_record,
    matrix,
    other_options,
    profiled,
    runs,
    sizes,
    under_load,
)
from said_of_records import Made as Section
from said_of_records import rows

from transect.domain.record import Record

Made = partial(Section, "runtimes")


def without_cpp() -> list[Record]:
    return [*runs("rust", 1e-4), *runs("python", 2e-4)]


def one_of_seven_failed() -> list[Record]:
    return [*runs("cpp", 1e-4), *runs("rust", 2e-4), infer_record("rust", 1.0, 6, fields=CRASH)]


def another_provider() -> list[Record]:
    return [*runs("cpp", 1e-4), *runs("python-openvino", 1e-4, provider="openvino")]


def other_versions() -> list[Record]:
    return [*runs("cpp", 1e-4), *runs("rust", 2e-4, details={"runtime_version": "1.20.0"})]


def precisions_and_batches() -> list[Record]:
    return [
        *runs("cpp", 1e-4),
        *runs("c", 1e-4),
        *runs("cpp", 5e-5, precision="fp16", metrics={"max_abs_difference": 2e-3}),
        *runs("cpp", 4e-4, batch=8),
        *runs("c", 4e-4, batch=8),
    ]


def copies_inside() -> list[Record]:
    return [*runs("cpp", 1e-4, 3), *runs("javascript", 2e-4, 3, details={"run_includes": ["copy"]})]


def partly_compared() -> list[Record]:
    partly = {"outputs_compared": 1, "outputs_expected": 2}
    none = [
        record.model_copy(update={"metrics": [m for m in record.metrics if m.name == "latency"]})
        for record in runs("go", 2e-4)
    ]
    return [*runs("cpp", 1e-4), *runs("rust", 2e-4, details=partly), *none]


def other_points() -> list[Record]:
    """Batches, threads and exporters that some runtimes alone ran."""
    return [
        *runs("cpp", 1e-4),
        *runs("rust", 2e-4),
        *runs("cpp", 4e-4, batch=8),
        *runs("rust", 4e-4, batch=8),
        *runs("java", 8e-4, batch=8),
        *runs("torch-eager", 2e-3, batch=8),
        *runs("go", 8e-4, threads=2),
        *runs("rust", 5e-4, exporter="torchscript", batch=4),
    ]


def long_steps() -> list[Record]:
    """A clock whose step is a twentieth of 100 us, and a hundredth of 500 us."""
    steps = {"clock_resolution_ns": 5000}
    return [
        *runs("cpp", 1e-4),
        *runs("browser", 2e-4, details=steps),
        *runs("cpp", 1e-4, workload="slow"),
        *runs("browser", 5e-4, details=steps, workload="slow"),
        *runs("browser", 2e-4, details=steps, workload="alone"),
        *runs("rust", 1e-4, workload="alone"),
    ]


def test_prose(snapshot: Any) -> None:
    made = (
        matrix,
        without_cpp,
        one_of_seven_failed,
        another_provider,
        other_versions,
        other_options,
        conditions,
        profiled,
        precisions_and_batches,
        copies_inside,
        partly_compared,
        other_points,
        long_steps,
        fourteen_models,
    )
    told = {each.__name__: Made(*each()).prose for each in made}
    told["under_load"] = Made(*runs("cpp", 1e-4), *under_load()).prose
    told |= {"sizes": Made(*sizes("c", "python", "rust")).prose, "sizes without C": Made(*sizes("rust")).prose}
    assert told == snapshot


def test_what_is_wrong_has_no_time_in_any_chart() -> None:
    made = Made(
        *runs("cpp", 1e-4),
        *runs("c", 1.1e-4),
        infer_record("java", 1e-9, fields=WRONG),
        *runs("rust", 1e-9, metrics={"nonfinite_outputs": 2}),
    )
    for chart in made.charts:
        assert "java" not in chart.svg + repr(chart.table), chart.title
        assert "rust" not in chart.svg + repr(chart.table), chart.title
    outputs = {row["Runtime"]: row for row in made.table("Outputs beside")}
    assert outputs["rust"]["Output"] == "wrong in 1" and outputs["rust"]["NaN and Inf"] == "2"
    assert (outputs["cpp"]["Output"], outputs["java"]["Output"]) == ("right", "wrong in 1")


@pytest.mark.parametrize(("slow", "log"), [(5e-4, False), (3e-3, True)])
def test_latencies_more_than_a_decade_apart_stand_on_a_log_axis(slow: float, log: bool) -> None:
    chart = Made(*runs("cpp", 1e-4), *runs("python", slow)).chart("Latency at batch 1")
    assert ("log scale" in chart.svg) is log


def test_a_tail_ends_where_twenty_samples_lie_beyond() -> None:
    def sampled(amount: int) -> list[Record]:
        values = [1e-4 * (1 + n / amount) for n in range(amount)]
        return [infer_record("cpp", 1.5e-4, samples=values), *runs("c", 1e-4)]

    [row] = rows(Made(*sampled(300)).chart("Tail").table)
    assert (row["90th (µs)"], row["95th (µs)"], row["99th (µs)"]) == ("190", "–", "–")
    [row] = rows(Made(*sampled(400)).chart("Tail").table)
    assert (row["95th (µs)"], row["99th (µs)"]) == ("195", "–")
    assert rows(Made(*sampled(2000)).chart("Tail").table)[0]["99th (µs)"] == "199"
    assert not [chart for chart in Made(*sampled(30)).charts if chart.title.startswith("Tail")]


INSIDE = {"run_includes": ["bind", "copy"]}
# Run of 100 us and 7.5 us around it; Run of 105 us with all of that in it.
CPP, JAVASCRIPT = 1e-4, 1.05e-4
WHOLE = {"bind_time": 0.0, "copy_time": 0.0, "end_to_end_time": JAVASCRIPT}


def spread_out(middle: float) -> list[float]:
    return [middle * (1 + n / 4000) for n in range(-200, 200)]


def beside(**javascript: object) -> list[Record]:
    """Make C++ and JavaScript at two batches: by Run alone C++ is first, end to end it is not."""
    given: dict[str, object] = {"details": INSIDE, "metrics": WHOLE, "calls": spread_out(JAVASCRIPT), **javascript}
    return [
        record
        for batch in (1, 8)
        for record in (
            *runs("cpp", CPP, batch=batch, samples=spread_out(CPP), calls=spread_out(1.075 * CPP)),
            *runs("javascript", JAVASCRIPT, batch=batch, samples=spread_out(JAVASCRIPT), **given),
        )
    ]


def partly_told() -> list[Record]:
    return [*runs("cpp", CPP), infer_record("javascript", JAVASCRIPT, told=False, details=INSIDE)]


def without_calls() -> list[Record]:
    """Make runs whose Runs hold different parts, and that kept times of Run alone."""
    return [
        *runs("cpp", CPP, samples=spread_out(CPP)),
        *runs("javascript", JAVASCRIPT, samples=spread_out(JAVASCRIPT), details=INSIDE),
    ]


def calls_of_two() -> list[Record]:
    return [
        record
        for name in ("identity-1", "identity-1k")
        for record in (
            *runs("c", 1e-6, workload=name, exporter="onnx"),
            *runs(
                "java", 1.05e-6, workload=name, exporter="onnx", details=INSIDE, metrics={"end_to_end_time": 1.05e-6}
            ),
        )
    ]


def test_prose_measure(snapshot: Any) -> None:
    made = (beside, partly_told, without_calls, calls_of_two)
    assert snapshot == {each.__name__: Made(*each()).prose for each in made}


@pytest.mark.parametrize("details", [{}, INSIDE])
def test_where_all_runs_hold_the_same_run_alone_is_drawn(details: dict[str, object]) -> None:
    made = Made(*runs("cpp", CPP, details=details), *runs("c", 1.1 * CPP, details=details))
    chart = made.chart("Latency at batch 1")
    assert "one Run (µs)" in chart.svg and "together" not in chart.note
    assert [row["Median (µs)"] for row in rows(chart.table)] == ["100", "110"]
    assert ("Run includes" in rows(chart.table)[0]) is bool(details)
