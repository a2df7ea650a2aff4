"""Hardware, systems and roofline: which values compete, what is best, what is refused, what bounds what."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from make_benchmark_records import IMPOSSIBLE, MEMORY, PEAK, write_benchmark_study
from make_multi_node_records import write_multi_node_study
from make_records import make_record
from said_of_records import Made, findings, prose, rows

from factories import bench_cell, ingest_record, log_metric, log_run
from result_runs import noisy, stream_run
from transect.analysis.benchmark_table import best_values, refusals
from transect.analysis.bounds import Rates
from transect.analysis.groups import group_records
from transect.analysis.hardware import BenchmarkValue, benchmark_values
from transect.analysis.load import load_records
from transect.domain.cell import Cell
from transect.domain.record import LogPoint, MetricValue, Record
from transect.hpc.ingest import ingest
from transect.report.engine.blocks import Chart
from transect.report.topics.roofline.facts import roofline_points
from transect.stages.ingest.result import result_of


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


def test_prose(records: list[Record], hardware: Made, tmp_path: Path, snapshot: Any) -> None:
    found = findings(*records)
    texts = {kind: [f"{f.text} ({f.evidence})" for f in found[kind]] for kind in ("hardware", "limit")}
    assert snapshot == texts | {
        "sections": [hardware.prose, *(Made("roofline", *runs).prose for runs in (records, on_networks(tmp_path)))]
    }


def test_no_number_of_an_invalid_run_is_in_a_chart(records: list[Record], hardware: Made) -> None:
    # Beside what was measured here no log of another machine is drawn.
    assert not any("from logs" in chart.title for chart in hardware.charts)
    logs = Made("hardware", *(record for record in records if record.stage == "ingest"))
    assert len(logs.charts) > 1
    for chart in (*hardware.charts, *logs.charts):
        for trace in ("cedar", "late.out", "98765", "98.8", "NaN"):
            assert trace not in drawn(chart), chart.title
    numbers = re.findall(r">([\d.]+)</text>", logs.chart("Flops, from logs").svg)
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


def bude(*runs: tuple[str, float, dict[str, int]]) -> list[BenchmarkValue]:
    """Values of synthetic miniBUDE runs: system, FLOP/s, parameters."""
    runs_read = [
        log_run(
            f"logs/{system}/out", "minibude", log_metric("gflops", value, "FLOP/s", "kernel_flops"), parameters=given
        )
        for system, value, given in runs
    ]
    return benchmark_values([ingest_record(*runs_read)])


def test_equal_poses_are_compared_whatever_the_work_group() -> None:
    found = best_values(bude(("a", 1e9, {"ppwi": 4, "wgsize": 1}), ("b", 2e9, {"ppwi": 4, "wgsize": 64})))
    assert refusals(found) == []
    assert [(row.system, row.wins, row.rivals) for row in found] == [("b", True, 2), ("a", False, 2)]


def test_an_unknown_number_of_poses_is_compared_with_no_known_one() -> None:
    found = best_values(bude(("a", 1e9, {"ppwi": 4}), ("b", 2e9, {})))
    [refusal] = refusals(found)
    assert len(refusal.values) == 2
    assert not any(row.wins for row in found)


def test_one_system_does_not_pick_its_best_across_poses() -> None:
    found = best_values(bude(("a", 1e9, {"ppwi": 1}), ("a", 9e9, {"ppwi": 8})))
    assert [row.value.value for row in found if row.value] == [1e9, 9e9]
    assert all(row.refused for row in found)


def test_a_time_over_sizes_competes_at_its_smallest_size_and_a_rate_at_any() -> None:
    metrics = [
        log_metric(name, value, unit, name, size=size)
        for name, unit, points in (
            ("network_latency", "s", ((8, 2e-6), (64, 1e-6))),
            ("network_bandwidth", "B/s", ((8, 1e6), (64, 9e6))),
        )
        for size, value in points
    ]
    record = ingest_record(log_run("f", "osu", *metrics), source="f")
    found = {row.name: row.value for row in best_values(benchmark_values([record])) if row.value}
    assert (found["network_latency"].value, found["network_latency"].size) == (2e-6, 8)
    assert (found["network_bandwidth"].value, found["network_bandwidth"].size) == (9e6, 64)


LOGS = {
    "hpl": "hpl-2.0-netlib.txt",
    "hpcc": "hpcc-1.5.0-two-ranks.txt",
    "memory-bandwidth-probe": "memory-bandwidth-probe.txt",
}


@pytest.mark.parametrize("benchmark", LOGS)
def test_what_ran_here_competes_with_logs_of_the_same_benchmark(tmp_path, benchmark) -> None:
    data = Path(__file__).parents[2] / "config/studies/quick-logs" / LOGS[benchmark]
    log = tmp_path / "aster" / "out.log"
    log.parent.mkdir()
    log.write_bytes(data.read_bytes())
    result = result_of(ingest([log]), must_have=True)
    here = bench_cell(benchmark)
    there = Cell.of(stage="ingest", source=tmp_path.name)
    records = [make_record(c, result.metrics, details=result.details) for c in (here, there)]
    found = [row for row in best_values(benchmark_values(records)) if row.value is not None]
    groups: dict[tuple[str, ...], set[str]] = {}
    for row in found:
        key = (row.benchmark, row.variant, row.name, row.series, *row.barrier)
        groups.setdefault(key, set()).add(row.system)
    assert groups and set(map(frozenset, groups.values())) == {frozenset({"aster", "synthetic-node-1"})}
    assert {row.rivals for row in found} == {2}


@pytest.mark.parametrize(
    ("benchmark", "labelled", "precision"),
    [
        ("matrix-multiply-probe", "fp32", "fp32"),
        ("hpcc", None, "fp64"),
        ("matrix-multiply-probe", "fp64", "fp64"),
        ("hpl", None, "fp64"),
        ("lu-probe", "fp64", "fp64"),
    ],
)
def test_a_rate_of_another_precision_is_no_roof(benchmark, labelled, precision) -> None:
    cell = bench_cell(benchmark)
    point = LogPoint(series="gemm_best", size=512, precision=labelled)
    rates = Rates([make_record(cell, [MetricValue.of("flops", 1e9, "a label says nothing: dgemm", point)])])
    assert rates.best("flops", 1, precision) is not None
    assert rates.best("flops", 1, "fp64" if precision == "fp32" else "fp32") is None


def test_a_rate_that_waits_for_the_memory_is_no_peak_of_arithmetic() -> None:
    point = LogPoint(series="cg_best", precision="fp64")
    for benchmark in ("cg-probe", "hpcg"):
        rates = Rates([make_record(bench_cell(benchmark), [MetricValue.of("sparse_flops", 1e9, "cg_best", point)])])
        assert rates.every() == []


def on_networks(folder: Path) -> list[Record]:
    """Trainings on several networks, with what their roof and their communication's bound are made of."""
    records = list(load_records(write_multi_node_study(folder)).records)
    for record in records:
        if record.stage == "train":
            record.details.update(flops_per_step=1e7, bytes_per_step=1e6)
    return records + [
        make_record(bench_cell(name, threads=threads), {metric: 1e10})
        for name, metric in (("m", "memory_bandwidth"), ("a", "flops"))
        for threads in (1, 2)
    ]


def test_a_log_belongs_to_the_folder_below_the_path_that_was_read() -> None:
    def system(file: str, source: str = "logs") -> str:
        return benchmark_values([ingest_record(log_run(file, "nccl-tests"), source=source)])[0].system

    assert system("/data/logs/aster/a/b.txt") == "aster"
    assert system("/data/logs/v3-256.txt") == "v3-256.txt"
    assert system("/data/b.txt", "b.txt") == "b.txt"
    assert system("../logs/NCCL-tests/birch/b.txt") == "birch"
    assert system("/data/logs/NCCL-tests/b.txt") == "b.txt"
    # Days, numbers and words of any log are no systems, as in the findings.
    assert [system(f"/data/logs/2026-08/{name}/b.txt") for name in ("aster", "birch")] == ["aster", "birch"]
    assert system("/data/logs/2026-08-01/run-2.out") == "logs"


def ingested(runs: dict[str, dict[str, Any]]) -> Record:
    return ingest_record(*({"file": f"/logs/{name}", **run} for name, run in runs.items()))


def runs_of(system: str, rate: float, seed: int, amount: int = 4, **how: Any) -> dict[str, Any]:
    return {f"{system}/2026-08-{n + 1:02}.out": stream_run(r, **how) for n, r in enumerate(noisy(rate, seed, amount))}


def by_days(days: str) -> dict[str, dict[str, Any]]:
    runs = runs_of("alpha", 1000, 1) | runs_of("beta", 800, 2)
    return {name.replace("2026-08-", days): run for name, run in runs.items()}


APART = by_days("2026-08-")
LOST = runs_of("alpha", 9e9, 5, amount=6, status="failed", reason="killed")
SETS = {
    "a faster one": APART,
    "alike": runs_of("alpha", 1000, 1) | runs_of("beta", 1003, 2),
    "one run each": runs_of("alpha", 1000, 1, 1) | runs_of("beta", 700, 2, 1),
    "two runs each": runs_of("alpha", 1000, 1, 2) | runs_of("beta", 700, 2, 2),
    "of one day": by_days("2026-08-09-"),
    "other settings": runs_of("alpha", 1000, 1) | runs_of("beta", 800, 2, array_size=5),
    "no settings": {name: run | {"parameters": {}} for name, run in APART.items()},
    "lost runs": LOST | {name.replace("alpha/", "alpha/again/"): run for name, run in APART.items()},
    # Refused runs and logs of no system win nothing.
    "refused": runs_of("alpha", 1000, 1) | runs_of("beta", 9e9, 2, status="invalid", reason="contradicted"),
    "no system": {f"stream-{n}.out": stream_run(n + 1) for n in range(4)},
}


def test_prose_systems(snapshot: Any) -> None:
    assert prose({name: [ingested(runs)] for name, runs in SETS.items()}, "system") == snapshot
