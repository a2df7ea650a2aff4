"""The sections on hardware and roofline: what is best, what is refused, what is left out."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from make_benchmark_records import IMPOSSIBLE, MEMORY, PEAK, write_benchmark_study
from make_records import make_record

from transect.analysis.benchmark_table import best_values, refusals, scaling_series
from transect.analysis.bounds import Rates
from transect.analysis.groups import group_records
from transect.analysis.hardware import BenchmarkValue, benchmark_values
from transect.analysis.load import load_records
from transect.analysis.roofline import roofline_points
from transect.domain.cell import Cell
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
    table = next(one for one in re.findall(r"<table>.*?</table>", part, re.S) if caption in one)
    lines = re.findall(r"<tr>(.*?)</tr>", table.split("<tbody>")[1], re.S)
    cells = [re.findall(r"<td.*?>(.*?)</td>", line, re.S) for line in lines]
    return [[unescape(re.sub(r"<[^>]+>", "", cell)) for cell in line] for line in cells]


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
    charts = re.findall(r'<div class="chart">.*?</div>\s*</div>', part, re.S)
    assert len(charts) > 5 and not any("minibude" in chart for chart in charts)


def bude(*runs: tuple[str, float, dict[str, int]]) -> list[BenchmarkValue]:
    """Values of synthetic miniBUDE runs: system, FLOP/s, parameters."""
    details = {
        "runs": [
            {"file": f"logs/{system}/out", "line": 1, "benchmark": "minibude", "status": "ok",
             "parameters": parameters,
             "metrics": [{"name": "gflops", "value": value, "printed": str(value),
                          "unit": "FLOP/s", "direction": "higher",
                          "normalised": {"name": "kernel_flops", "value": value,
                                         "unit": "FLOP/s"}}]}
            for system, value, parameters in runs
        ]
    }  # fmt: skip
    return benchmark_values([make_record(Cell(stage="ingest", source="logs"), details=details)])


def test_equal_poses_are_compared_whatever_the_work_group() -> None:
    found = best_values(bude(("a", 1e9, {"ppwi": 4, "wgsize": 1}),
                             ("b", 2e9, {"ppwi": 4, "wgsize": 64})))  # fmt: skip
    assert refusals(found) == []
    assert [(row.system, row.wins, row.rivals) for row in found] == [
        ("b", True, 2),
        ("a", False, 2),
    ]


def test_an_unknown_number_of_poses_is_compared_with_no_known_one() -> None:
    found = best_values(bude(("a", 1e9, {"ppwi": 4}), ("b", 2e9, {})))
    [refusal] = refusals(found)
    assert len(refusal.values) == 2
    assert not any(row.wins for row in found)


def test_one_system_does_not_pick_its_best_across_poses() -> None:
    found = best_values(bude(("a", 1e9, {"ppwi": 1}), ("a", 9e9, {"ppwi": 8})))
    assert [row.value.value for row in found if row.value] == [1e9, 9e9]
    assert all(row.refused for row in found)


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
    charts = "".join(re.findall(r'<div class="charts">.*?\n</div>\n(?=<|$)', part, re.S))
    charts = charts or part
    for plot in re.findall(r'<svg class="plot".*?</svg>', part, re.S):
        assert "cedar" not in plot and "late.out" not in plot
        assert "NaN" not in plot
        largest = max(
            (float(one.replace("\u202f", "")) for one in
             re.findall(r">([\d.\u202f]+)</text>", plot)), default=0.0
        )  # fmt: skip
        assert largest < IMPOSSIBLE / 1000 * 50
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


def test_ranks_of_a_node_share_its_roof() -> None:
    cell = Cell(stage="train", workload="w", framework="numpy", strategy="mpi", ranks_per_node=2)
    bench = [
        make_record(Cell(stage="bench", benchmark=name, threads=2), {metric: value})
        for name, metric, value in (("m", "memory_bandwidth", 1e10), ("a", "flops", 1e11))
    ]
    train = make_record(
        cell, {"step_time": 0.1}, details={"flops_per_step": 1e8, "bytes_per_step": 1e8}
    )
    [point], _ = roofline_points(group_records([train]), Rates(bench))
    assert (point.flops, point.threads, point.intensity) == (2e8, 2, 1)
    assert point.share == pytest.approx(2e9 / 1e10)


@pytest.mark.parametrize(
    ("benchmark", "label", "precision"),
    [("matrix-multiply-probe", "sgemm-512_best", "fp32"), ("hpcc", "StarDGEMM_Gflops", "fp64"),
     ("matrix-multiply-probe", "dgemm-512_best", "fp64"), ("hpl", "gflops", "fp64")],
)  # fmt: skip
def test_a_rate_of_another_precision_is_no_roof(benchmark: str, label: str, precision: str) -> None:
    from transect.domain.record import MetricValue

    cell = Cell(stage="bench", benchmark=benchmark)
    rates = Rates([make_record(cell, [MetricValue.of("flops", 1e9, label)])])
    assert rates.best("flops", 1, precision) is not None
    assert rates.best("flops", 1, "fp64" if precision == "fp32" else "fp32") is None


def test_the_roofline_says_what_a_cell_reaches_and_where_counts_come_from(
    built: tuple[str, dict[str, Any]],
) -> None:
    part = section(built[0], "roofline")
    said = text(part)
    assert "reaches 41 % of what memory bandwidth allows" in said
    assert "reaches 40 % of what peak FLOP/s allows" in said
    assert (
        "counted from the workload's layers, not measured and not read from an ONNX graph" in said
    )
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


def test_a_log_belongs_to_the_folder_below_the_path_that_was_read() -> None:
    def system(file: str, source: str = "logs") -> str:
        details = {"runs": [{"file": file, "line": 1, "benchmark": "nccl-tests", "status": "ok"}]}
        record = make_record(Cell(stage="ingest", source=source), details=details)
        return benchmark_values([record])[0].system

    assert system("/data/logs/aster/a/b.txt") == "aster"
    assert system("/data/logs/b.txt") == "b.txt"
    assert system("/data/b.txt", "b.txt") == "b.txt"
    assert system("../logs/NCCL-tests/birch/b.txt") == "birch"
    assert system("/data/logs/NCCL-tests/b.txt") == "b.txt"


def test_without_benchmarks_there_is_no_roof_and_no_table(tmp_path: Path) -> None:
    build_report(tmp_path / "none", tmp_path / "report.html", title="t", questions=[])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "there is no roof" in section(page, "roofline")
    assert "No benchmark ran and no log was read" in section(page, "hardware")
