"""The sections on hardware and roofline: what is best, what is refused, what is left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from make_benchmark_records import IMPOSSIBLE, MEMORY, PEAK, write_benchmark_study
from pages import Page
from said_of_records import Made, findings, rows

from transect.analysis.benchmark_table import best_values, scaling_series
from transect.analysis.bounds import Rates
from transect.analysis.groups import group_records
from transect.analysis.hardware import benchmark_values
from transect.analysis.load import load_records
from transect.analysis.roofline import roofline_points
from transect.domain.record import Record
from transect.report.blocks import Chart
from transect.report.build import build_report
from transect.report.findings.finding import Finding


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_benchmark_study(tmp_path_factory.mktemp("benchmarks"))


@pytest.fixture(scope="module")
def records(folder: Path) -> list[Record]:
    return load_records(folder).records


@pytest.fixture(scope="module")
def hardware(records: list[Record]) -> Made:
    return Made("hardware", *records)


@pytest.fixture(scope="module")
def roofline(records: list[Record]) -> Made:
    return Made("roofline", *records)


@pytest.fixture(scope="module")
def found(records: list[Record]) -> dict[str, list[Finding]]:
    return findings(*records)


@pytest.fixture(scope="module")
def built(folder: Path) -> Path:
    output = folder.parent / "out" / "report.html"
    build_report(folder, output, title="Benchmarks", questions=[])
    return output


def drawn(chart: Chart) -> str:
    """A chart's drawing and numbers."""
    return chart.svg + repr(rows(chart.table))


def test_prose(hardware: Made, roofline: Made, found: dict[str, list[Finding]], snapshot: Any) -> None:
    told = {kind: [f"{one.text} ({one.evidence})" for one in found[kind]] for kind in ("hardware", "limit")}
    none = {key: Made(key).prose for key in ("hardware", "roofline")}
    assert snapshot == told | {"sections": [hardware.prose, roofline.prose], "sections of nothing": none}


def test_nothing_goes_wrong_and_the_roofline_stands_before_the_hardware(built: Path) -> None:
    page = Page.read(built)
    order = page.sections
    assert order[order.index("roofline") + 1] == "hardware"
    assert page.summary["problems"] == []


def test_the_table_holds_the_best_valid_value_of_each_system(hardware: Made) -> None:
    best = hardware.table("Best valid value of each benchmark")
    heads = ("System", "Best", "", "As printed", "With")
    hpl = [row for row in best if row["Benchmark"] == "hpl · netlib · gflops"]
    parameters = "N=40000, NB=192, P=2, Q=4"
    assert [tuple(row[head] for head in heads) for row in hpl] == [
        ("birch", "402 GFLOP/s", "best of 2", "402.500 GFLOP/s", parameters),
        ("aster", "151 GFLOP/s", "None", "151.000 GFLOP/s", parameters),
    ]
    reason = hpl[0]["Runs, and why not valid"]
    assert reason.startswith("4, of them 1 invalid, 1 truncated: ") and "98765.0 GFLOP/s" in reason
    [here] = [row for row in best if row["Benchmark"] == "hpl · gflops"]
    assert (here["System"], here["With"]) == ("riverbed", "nodes=2, ranks=4, threads=1")
    [cedar] = [row for row in best if "cedar" in row["System"]]
    assert [cedar[head] for head in heads[:3]] == ["<b>cedar<i>.out", "–", "no valid run"]
    score = [row for row in best if row["Benchmark"] == "io500 · standard · score"]
    assert [tuple(row[head] for head in heads[:3]) for row in score] == [
        ("birch", "23", "best of 2"),
        ("aster", "11.5", "None"),
    ]


def test_times_and_residuals_of_freely_chosen_problems_have_no_best(records: list[Record]) -> None:
    names = {row.name for row in best_values(benchmark_values(records))}
    assert "benchmark_time" not in names and "flops" in names


def test_minibude_with_other_poses_per_work_item_is_refused_with_the_reason(hardware: Made) -> None:
    [why] = [line for line in hardware.text.splitlines() if "miniBUDE" in line]
    for words in ("33 GFLOP/s (aster", "71 GFLOP/s (birch", "not compared", "poses"):
        assert words in why
    best = hardware.table("Best valid value of each")
    bude = [row[""] for row in best if row["Benchmark"].startswith("minibude")]
    assert bude == ["not compared"] * 2
    assert not any("minibude" in drawn(chart) for chart in hardware.charts)


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


def test_io500_draws_one_whole_run_of_each_system(hardware: Made) -> None:
    assert hardware.chart("IO500 metadata rate")
    found = rows(hardware.chart("IO500 bandwidth").table)
    assert [tuple(row.values()) for row in found[:2]] == [
        ("ior-easy-write", "aster", "3.25", "3.250 GiB/s", "/somewhere/logs/aster/io500.txt:3"),
        ("ior-easy-write", "birch", "6.5", "6.500 GiB/s", "/somewhere/logs/birch/io500.txt:3"),
    ]
    assert len(found) == 8


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


def test_text_of_logs_and_names_of_files_stay_text(built: Path) -> None:
    page = built.read_text(encoding="utf-8")
    assert "<script>window.HACKED" not in page and "<b>cedar" not in page
    assert "&lt;b&gt;cedar&lt;i&gt;.out" in page
    assert "\x1b" not in page and "\x00" not in page


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


def test_the_roofline_says_what_a_cell_reaches_and_where_counts_come_from(roofline: Made) -> None:
    said = roofline.prose
    for words in ("reaches 41 %", "reaches 40 %", "counted, not measured", "2 cells left out"):
        assert words in said
    assert list(roofline.table("Training: share of the roof")[0].values())[:8] == [
        "numpy · single · 1 rank · 1 thread",
        "200",
        "9.54 MiB",
        "20",
        "10 ms",
        "20",
        "40 %",
        "peak FLOP/s",
    ]
    assert len(roofline.charts) == 3
    for chart in roofline.charts:
        assert 'aria-label="Roofline of' in chart.svg
        assert not re.search(r'(?:fill|stroke)="(?:#|black|white|rgb)', chart.svg)


def test_findings_name_the_limit_of_inference_and_both_numbers_of_a_contradiction(
    found: dict[str, list[Finding]],
) -> None:
    [limit] = [one for one in found["limit"] if "python" in one.text]
    assert "41 %" in limit.text and "memory bandwidth" in limit.text
    [wrong] = found["hardware"]
    assert re.findall(r"\d+", wrong.text)[:3] == ["2", "28", "1"]
    assert "98765.0 GFLOP/s" in wrong.evidence and "412 GFLOP/s" in wrong.evidence


def test_without_benchmarks_there_is_no_roof_and_no_table() -> None:
    for key, words in (("roofline", "no roof"), ("hardware", "No benchmark")):
        made = Made(key)
        assert words in made.lead + made.text and not made.tables and not made.charts


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 375])
def test_long_tables_and_log_text_stay_inside_a_real_page(browser: Any, built: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(built.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("window.HACKED") is None
    assert page.locator("#hardware img, #hardware script, #hardware b").count() == 0
    page.close()
