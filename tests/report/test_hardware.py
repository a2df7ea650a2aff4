"""The sections on hardware and roofline: what is best, what is refused, what is left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from make_benchmark_records import IMPOSSIBLE, MEMORY, PEAK, write_benchmark_study
from said_of_records import Made, findings, rows

from transect.analysis.benchmark_table import best_values, scaling_series
from transect.analysis.bounds import Rates
from transect.analysis.groups import group_records
from transect.analysis.hardware import benchmark_values
from transect.analysis.load import load_records
from transect.analysis.roofline import roofline_points
from transect.domain.record import Record
from transect.report.blocks import Chart


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_benchmark_study(tmp_path_factory.mktemp("benchmarks"))


@pytest.fixture(scope="module")
def records(folder: Path) -> list[Record]:
    return load_records(folder).records


@pytest.fixture(scope="module")
def hardware(records: list[Record]) -> Made:
    return Made("hardware", *records)


def drawn(chart: Chart) -> str:
    """A chart's drawing and numbers."""
    return chart.svg + repr(rows(chart.table))


def test_prose(records: list[Record], hardware: Made, snapshot: Any) -> None:
    found = findings(*records)
    told = {kind: [f"{one.text} ({one.evidence})" for one in found[kind]] for kind in ("hardware", "limit")}
    none = {key: Made(key).prose for key in ("hardware", "roofline")}
    assert snapshot == told | {
        "sections": [hardware.prose, Made("roofline", *records).prose],
        "sections of nothing": none,
    }


def test_times_and_residuals_of_freely_chosen_problems_have_no_best(records: list[Record]) -> None:
    names = {row.name for row in best_values(benchmark_values(records))}
    assert "benchmark_time" not in names and "flops" in names


def test_benchmarks_are_drawn_over_threads_and_nodes(records: list[Record], hardware: Made) -> None:
    values = benchmark_values(records)
    threads = {
        (one.first.benchmark, one.first.series): [at for at, _ in one.points]
        for one in scaling_series(values, "threads")
    }
    assert threads["memory-bandwidth-probe", "copy_median"] == [1, 2, 4]
    assert threads["stream", "rate-triad"] == [1, 2, 8]
    [nodes] = scaling_series(values, "nodes")
    assert nodes.first.benchmark == "hpl"
    assert nodes.points == ((1, (80e9,)), (2, (80e9 * 2**0.9,)))
    titles = {chart.title for chart in hardware.charts}
    assert {"Flops over threads", "Memory bandwidth over threads", "Flops over nodes"} <= titles


def test_no_number_of_an_invalid_run_is_in_a_chart(hardware: Made) -> None:
    assert len(hardware.charts) > 5
    for chart in hardware.charts:
        for trace in ("cedar", "late.out", "98765", "98.8", "NaN"):
            assert trace not in drawn(chart), chart.title
    numbers = re.findall(r">([\d.]+)</text>", hardware.chart("Flops, from logs").svg)
    assert len(numbers) > 3 and max(map(float, numbers)) < IMPOSSIBLE / 100
    # It stands among the runs that are not valid.
    invalid = hardware.table("Runs that are not valid")
    assert "98.8 TFLOP/s" in {row["Value"] for row in invalid}


def test_points_below_the_roof_are_those_of_the_calculation_by_hand(records: list[Record]) -> None:
    points, left_out = roofline_points(group_records(records, "train"), Rates(records))
    crowded, unknown = ("over-subscribed", "without benchmarks of the same number of threads and precision")
    assert left_out == {crowded: 1, unknown: 1}
    assert [point.threads for point in points] == [1, 2]
    for point in points:
        assert point.intensity == pytest.approx(20)
        assert point.achieved == pytest.approx(2e8 / 0.01)
        assert point.roof == pytest.approx(min(PEAK[point.threads], 20 * MEMORY[point.threads]))
        assert point.bound.kind == "arithmetic"
    assert [point.share for point in points] == pytest.approx([0.4, 0.2])
    [run], _ = roofline_points(group_records(records, "infer"), Rates(records))
    assert (run.intensity, run.roof) == pytest.approx((1, 10e9))
    assert run.share == pytest.approx(0.41)
    assert run.bound.kind == "memory bandwidth"
