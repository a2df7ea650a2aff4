"""Charts of runtimes whose Runs hold different parts: whole calls for all, and the chart says so."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from make_runtime_records import infer_record, runs
from said_of_records import Made as Section
from said_of_records import findings, rows

from transect.domain.record import Record

INSIDE = {"run_includes": ["bind", "copy"]}
# Run of 100 us and 7.5 us around it; Run of 105 us with all of that in it.
CPP, JAVASCRIPT = 1e-4, 1.05e-4
WHOLE = {"bind_time": 0.0, "copy_time": 0.0, "end_to_end_time": JAVASCRIPT}
# The section that records make.
Made = partial(Section, "runtimes")


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


def test_prose(snapshot: Any) -> None:
    made = (beside, partly_told, without_calls, calls_of_two)
    assert snapshot == {each.__name__: Made(*each()).prose for each in made}


def test_the_charts_and_the_findings_name_the_same_first() -> None:
    [latency, _] = findings(*beside())["runtime"]
    assert latency.claim.startswith("javascript") and "end to end" in latency.claim


@pytest.mark.parametrize("details", [{}, INSIDE])
def test_where_all_runs_hold_the_same_run_alone_is_drawn(details: dict[str, object]) -> None:
    made = Made(*runs("cpp", CPP, details=details), *runs("c", 1.1 * CPP, details=details))
    chart = made.chart("Latency at batch 1")
    assert "one Run (µs)" in chart.svg and "together" not in chart.note
    assert [row["Median (µs)"] for row in rows(chart.table)] == ["100", "110"]
    assert ("Run includes" in rows(chart.table)[0]) is bool(details)
