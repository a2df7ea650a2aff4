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
CHARTS = ("Latency at batch 1", "Tail of the latency", "Throughput over batch")
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


def first_words(made: Made, title: str) -> list[str]:
    return [str(row["Point"]).split(" · ")[0] for row in rows(made.chart(title).table)]


def test_where_runs_hold_different_parts_every_chart_draws_whole_calls() -> None:
    made = Made(*beside())
    latency = made.chart("Latency at batch 1")
    assert first_words(made, "Latency at batch 1") == ["javascript", "cpp"]
    assert "bind, Run and copy" in latency.axis and latency.axis in latency.svg
    fast, slow = rows(latency.table)
    assert (fast["Median (µs)"], slow["Median (µs)"]) == ("105", "108")
    assert (fast["Run (µs)"], slow["Run (µs)"]) == ("105", "100")
    assert (fast["Run includes"], slow["Run includes"]) == ("bind, copy", "")
    # Of whole calls, not of Run.
    assert slow["95th percentile (µs)"] == "112"
    for title in CHARTS:
        assert "together, for all: javascript" in made.chart(title).note
    throughput = rows(made.chart("Throughput over batch").table)
    told = {(row["Point"].split(" · ")[0], row["Batch"]): row for row in throughput}
    assert told["javascript", "8"]["Median (samples/s)"] == "76\u202f190"
    assert told["cpp", "8"]["Median (samples/s)"] == "74\u202f233"
    assert "samples/s end to end" in made.chart("Throughput over batch").svg
    assert rows(made.chart("Tail").table)[0]["Median (µs)"] == "105"


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


def test_runs_that_do_not_tell_whole_calls_are_marked() -> None:
    chart = Made(*partly_told()).chart("Latency at batch 1")
    assert "one Run" in chart.svg
    assert "Not alike: javascript's" in chart.note
    assert [row["Run includes"] for row in rows(chart.table)] == ["", "bind, copy"]


def test_a_tail_of_whole_calls_needs_times_of_whole_calls() -> None:
    made = Made(*without_calls())
    assert not [chart for chart in made.charts if chart.title.startswith("Tail")]
    assert "No tail" in made.text


def test_the_chart_of_calls_draws_whole_calls_too() -> None:
    chart = Made(*calls_of_two()).chart("A call over the numbers")
    assert "end to end (µs" in chart.svg and "java's Run includes" in chart.note


def test_times_in_the_matrix_are_of_whole_calls_where_its_runtimes_differ() -> None:
    [row] = [row for row in Made(*beside()).table("Models by runtimes") if row["cpp"]]
    assert row["cpp"] == "✓ 108 µs end to end" and row["javascript"].startswith("✓ ")
