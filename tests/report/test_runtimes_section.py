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
from said_of_records import Sets, rows

from transect.domain.record import Record

Made = partial(Section, "runtimes")


INSIDE = {"run_includes": ["bind", "copy"]}
# Run of 100 us and 7.5 us around it; Run of 105 us with all of that in it.
CPP, JAVASCRIPT = 1e-4, 1.05e-4
WHOLE = {"bind_time": 0.0, "copy_time": 0.0, "end_to_end_time": JAVASCRIPT}
PARTLY = {"outputs_compared": 1, "outputs_expected": 2}
# A clock whose step is a twentieth of 100 us, and a hundredth of 500 us.
STEPS = {"clock_resolution_ns": 5000}


def timed_alone(runtime: str, latency: float) -> list[Record]:
    return [
        record.model_copy(update={"metrics": [m for m in record.metrics if m.name == "latency"]})
        for record in runs(runtime, latency)
    ]


def spread_out(middle: float) -> list[float]:
    return [middle * (1 + n / 4000) for n in range(-200, 200)]


def beside() -> list[Record]:
    """Make C++ and JavaScript at two batches: by Run alone C++ is first, end to end it is not."""
    javascript: dict[str, Any] = {"details": INSIDE, "metrics": WHOLE, "calls": spread_out(JAVASCRIPT)}
    return [
        record
        for batch in (1, 8)
        for record in (
            *runs("cpp", CPP, batch=batch, samples=spread_out(CPP), calls=spread_out(1.075 * CPP)),
            *runs("javascript", JAVASCRIPT, batch=batch, samples=spread_out(JAVASCRIPT), **javascript),
        )
    ]


def calls_of_two() -> list[Record]:
    differing: dict[str, Any] = {"details": INSIDE, "metrics": {"end_to_end_time": 1.05e-6}}
    return [
        record
        for name in ("identity-1", "identity-1k")
        for runtime, latency, more in (("c", 1e-6, {}), ("java", 1.05e-6, differing))
        for record in runs(runtime, latency, workload=name, exporter="onnx", **more)
    ]


SETS = Sets(
    matrix=matrix,
    without_cpp=lambda: [*runs("rust", 1e-4), *runs("python", 2e-4)],
    one_of_seven_failed=lambda: [*runs("cpp", 1e-4), *runs("rust", 2e-4), infer_record("rust", 1.0, 6, fields=CRASH)],
    another_provider=lambda: [*runs("cpp", 1e-4), *runs("python-openvino", 1e-4, provider="openvino")],
    other_versions=lambda: [*runs("cpp", 1e-4), *runs("rust", 2e-4, details={"runtime_version": "1.20.0"})],
    other_options=other_options,
    conditions=conditions,
    profiled=profiled,
    precisions_and_batches=lambda: [
        *runs("cpp", 1e-4),
        *runs("c", 1e-4),
        *runs("cpp", 5e-5, precision="fp16", metrics={"max_abs_difference": 2e-3}),
        *runs("cpp", 4e-4, batch=8),
        *runs("c", 4e-4, batch=8),
    ],
    partly_compared=lambda: [*runs("cpp", 1e-4), *runs("rust", 2e-4, details=PARTLY), *timed_alone("go", 2e-4)],
    # Batches, threads and exporters that some runtimes alone ran.
    other_points=lambda: [
        *runs("cpp", 1e-4),
        *runs("rust", 2e-4),
        *runs("cpp", 4e-4, batch=8),
        *runs("rust", 4e-4, batch=8),
        *runs("java", 8e-4, batch=8),
        *runs("torch-eager", 2e-3, batch=8),
        *runs("go", 8e-4, threads=2),
        *runs("rust", 5e-4, exporter="torchscript", batch=4),
    ],
    long_steps=lambda: [
        *runs("cpp", 1e-4),
        *runs("browser", 2e-4, details=STEPS),
        *runs("cpp", 1e-4, workload="slow"),
        *runs("browser", 5e-4, details=STEPS, workload="slow"),
        *runs("browser", 2e-4, details=STEPS, workload="alone"),
        *runs("rust", 1e-4, workload="alone"),
    ],
    fourteen_models=fourteen_models,
    under_load=lambda: [*runs("cpp", 1e-4), *under_load()],
    sizes=lambda: sizes("c", "python", "rust"),
    sizes_without_c=lambda: sizes("rust"),
    # Runs that hold different parts: whole calls are drawn for all where they are told.
    beside=beside,
    alike_inside=lambda: [*runs("cpp", CPP, details=INSIDE), *runs("c", 1.1 * CPP, details=INSIDE)],
    partly_told=lambda: [*runs("cpp", CPP), infer_record("javascript", JAVASCRIPT, complete=False, details=INSIDE)],
    without_calls=lambda: [
        *runs("cpp", CPP, samples=spread_out(CPP)),
        *runs("javascript", JAVASCRIPT, samples=spread_out(JAVASCRIPT), details=INSIDE),
    ],
    calls_of_two=calls_of_two,
)


def test_prose(snapshot: Any) -> None:
    assert {name: Made(*SETS[name]).prose for name in SETS} == snapshot


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


@pytest.mark.parametrize(("slow", "log"), [(5e-4, False), (3e-3, True)])
def test_latencies_more_than_a_decade_apart_stand_on_a_log_axis(slow: float, log: bool) -> None:
    chart = Made(*runs("cpp", 1e-4), *runs("python", slow)).chart("Batch 1")
    assert ("log scale" in chart.svg) is log


@pytest.mark.parametrize(
    ("amount", "told"), [(30, ("–", "–")), (300, ("–", "–")), (400, ("195", "–")), (2000, ("195", "199"))]
)
def test_a_percentile_needs_twenty_samples_beyond_it(amount: int, told: tuple[str, str]) -> None:
    values = [1e-4 * (1 + n / amount) for n in range(amount)]
    made = Made(infer_record("cpp", 1.5e-4, samples=values), *runs("c", 1e-4))
    [row] = [row for row in rows(made.chart("Batch 1").table) if "C++" in row["Point"]]
    assert (row["95th percentile (µs)"], row["99th percentile (µs)"]) == told
