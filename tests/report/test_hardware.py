"""The sections on hardware and roofline: what is best, what is refused, what is left out."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from make_benchmark_records import IMPOSSIBLE, MEMORY, PEAK, write_benchmark_study

from transect.analysis.benchmark_table import best_values, scaling_series
from transect.analysis.bounds import Rates
from transect.analysis.groups import group_records
from transect.analysis.hardware import benchmark_values
from transect.analysis.load import load_records
from transect.analysis.roofline import roofline_points
from transect.domain.record import Record
from transect.report.build import build_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_benchmark_study(tmp_path_factory.mktemp("benchmarks"))


@pytest.fixture(scope="module")
def records(folder: Path) -> list[Record]:
    return load_records(folder).records


@pytest.fixture(scope="module")
def built(folder: Path) -> tuple[str, dict[str, Any]]:
    output = folder.parent / "out" / "report.html"
    build_report(folder, output, title="Benchmarks", questions=[])
    summary = json.loads((output.parent / "summary.json").read_text(encoding="utf-8"))
    return output.read_text(encoding="utf-8"), summary


def section(page: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', page, re.S)
    assert found is not None
    return found.group()


def rows(part: str, caption: str) -> list[list[str]]:
    """Cells of the table with that caption, as text."""
    table = next(
        one for one in re.findall(r"<table[^>]*>.*?</table>", part, re.S) if caption in one
    )
    lines = re.findall(r"<tr[^>]*>(.*?)</tr>", table.split("<tbody>")[1], re.S)
    cells = [re.findall(r"<td.*?>(.*?)</td>", line, re.S) for line in lines]
    return [[unescape(re.sub(r"<[^>]+>", "", cell)) for cell in line] for line in cells]


def charts(part: str) -> str:
    """The hardware section's charts with their tables."""
    return part[part.index('<div class="charts">') : part.index("Runs that are not valid")]


def text(part: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", part)))


def test_nothing_goes_wrong_and_the_roofline_stands_before_the_hardware(
    built: tuple[str, dict[str, Any]],
) -> None:
    page, summary = built
    order = re.findall(r'<section id="([a-z]+)">', page)
    assert order[order.index("roofline") + 1] == "hardware"
    assert summary["problems"] == []


def test_the_table_holds_the_best_valid_value_of_each_system(
    built: tuple[str, dict[str, Any]],
) -> None:
    found = rows(section(built[0], "hardware"), "Best valid value of each benchmark")
    hpl = [row for row in found if row[0] == "hpl · netlib · gflops"]
    assert [row[1:6] for row in hpl] == [
        ["birch", "402 GFLOP/s", "best of 2", "402.500 GFLOP/s", "N=40000, NB=192, P=2, Q=4"],
        ["aster", "151 GFLOP/s", "", "151.000 GFLOP/s", "N=40000, NB=192, P=2, Q=4"],
    ]
    assert hpl[0][6].startswith("4, of them 1 invalid, 1 truncated: the log prints 98765.0 GFLOP/s")
    [here] = [row for row in found if row[0] == "hpl · gflops"]
    assert here[1] == "riverbed" and here[5] == "nodes=2, ranks=4, threads=1"
    [cedar] = [row for row in found if "cedar" in row[1]]
    assert cedar[1:4] == ["<b>cedar<i>.out", "–", "no valid run"]
    assert [row[1:4] for row in found if row[0] == "io500 · standard · score"] == [
        ["birch", "23", "best of 2"], ["aster", "11.5", ""],
    ]  # fmt: skip


def test_times_and_residuals_of_freely_chosen_problems_have_no_best(records: list[Record]) -> None:
    names = {row.name for row in best_values(benchmark_values(records))}
    assert "benchmark_time" not in names and "flops" in names


def test_minibude_with_other_poses_per_work_item_is_refused_with_the_reason(
    built: tuple[str, dict[str, Any]],
) -> None:
    part = section(built[0], "hardware")
    assert (
        "33 GFLOP/s (aster, poses per work-item 1) and 71 GFLOP/s (birch, poses per work-item 8) "
        "are not compared. miniBUDE counts operations by a formula that depends on the poses"
    ) in text(part)
    bude = [row for row in rows(part, "Best valid value") if row[0].startswith("minibude")]
    assert [row[3] for row in bude] == ["not compared", "not compared"]
    assert "minibude" not in charts(part)


def test_benchmarks_are_drawn_over_threads_and_nodes(
    records: list[Record], built: tuple[str, dict[str, Any]]
) -> None:
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
    titles = re.findall(r"<figcaption>(.*?)</figcaption>", section(built[0], "hardware"))
    assert {"Flops over threads", "Memory bandwidth over threads", "Flops over nodes"} <= set(
        titles
    )


def test_io500_draws_one_whole_run_of_each_system(built: tuple[str, dict[str, Any]]) -> None:
    part = section(built[0], "hardware")
    titles = re.findall(r"<figcaption>(.*?)</figcaption>", part)
    assert "IO500 bandwidth by phase" in titles and "IO500 metadata rate by phase" in titles
    found = rows(part, '<th scope="col">Phase</th>')
    assert found[:2] == [
        ["ior-easy-write", "aster", "3.25", "3.250 GiB/s", "/somewhere/logs/aster/io500.txt:3"],
        ["ior-easy-write", "birch", "6.5", "6.500 GiB/s", "/somewhere/logs/birch/io500.txt:3"],
    ]
    assert len(found) == 8


def test_no_number_of_an_invalid_run_is_in_a_chart(built: tuple[str, dict[str, Any]]) -> None:
    part = section(built[0], "hardware")
    drawn = charts(part)
    assert drawn.count('<svg class="plot"') > 5
    for trace in ("cedar", "late.out", "98765", "98.8", "NaN"):
        assert trace not in drawn
    [flops] = re.findall(r"Flops, from logs</figcaption>.*?</figure>", drawn, re.S)
    numbers = re.findall(r">([\d.]+)</text>", flops)
    assert len(numbers) > 3 and max(map(float, numbers)) < IMPOSSIBLE / 100
    assert "98.8 TFLOP/s" in part, "it stands among the runs that are not valid"


def test_text_of_logs_and_names_of_files_stay_text(built: tuple[str, dict[str, Any]]) -> None:
    page = built[0]
    assert "<script>window.HACKED" not in page and "<b>cedar" not in page
    assert "&lt;b&gt;cedar&lt;i&gt;.out" in page
    assert "\x1b" not in page and "\x00" not in page


def test_points_below_the_roof_are_those_of_the_calculation_by_hand(records: list[Record]) -> None:
    points, left_out = roofline_points(group_records(records, "train"), Rates(records))
    assert left_out == {
        "over-subscribed": 1, "without benchmarks of the same number of threads and precision": 1,
    }  # fmt: skip
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


def test_the_roofline_says_what_a_cell_reaches_and_where_counts_come_from(
    built: tuple[str, dict[str, Any]],
) -> None:
    part = section(built[0], "roofline")
    said = text(part)
    assert "reaches 41 % of what memory bandwidth allows" in said
    assert "reaches 40 % of what peak FLOP/s allows" in said
    assert "counted, not measured: from the ONNX graph for runtimes that execute one" in said
    assert "Training: 2 cells left out: 1 over-subscribed, 1 without benchmarks" in said
    assert rows(part, "Training: share of the roof")[0][:8] == [
        "numpy · single · 1 rank · 1 thread", "200", "9.54 MiB", "20", "10 ms", "20", "40 %",
        "peak FLOP/s",
    ]  # fmt: skip
    labels = re.findall(r'<svg class="plot"[^>]*aria-label="([^"]*)"', part)
    assert len(labels) == 3 and all("Roofline of" in label for label in labels)
    for plot in re.findall(r'<svg class="plot".*?</svg>', part, re.S):
        assert not re.search(r'(?:fill|stroke)="(?:#|black|white|rgb)', plot)


def test_findings_name_the_limit_of_inference_and_both_numbers_of_a_contradiction(
    built: tuple[str, dict[str, Any]],
) -> None:
    found = built[1]["findings"]
    [limit] = [one for one in found if one["kind"] == "limit" and "python" in one["text"]]
    assert limit["text"].endswith("reaches 41 % of what memory bandwidth allows.")
    [wrong] = [one for one in found if one["kind"] == "hardware"]
    assert wrong["text"].startswith("2 of 28 benchmark runs are invalid, besides 1 truncated")
    assert "98765.0 GFLOP/s" in wrong["evidence"] and "412 GFLOP/s" in wrong["evidence"]


def test_without_benchmarks_there_is_no_roof_and_no_table(tmp_path: Path) -> None:
    build_report(tmp_path / "none", tmp_path / "report.html", title="t", questions=[])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "there is no roof" in section(page, "roofline")
    assert "No benchmark ran and no log was read" in section(page, "hardware")


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 375])
def test_long_tables_and_log_text_stay_inside_a_real_page(
    browser: Any, built: tuple[str, dict[str, Any]], folder: Path, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto((folder.parent / "out" / "report.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("window.HACKED") is None
    assert page.locator("#hardware img, #hardware script, #hardware b").count() == 0
    page.close()
