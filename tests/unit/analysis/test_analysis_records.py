"""From records to tables, groups, bounds, efficiencies and changes between result sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factories import bare_record, bench_cell, train_cell
from transect.analysis.bounds import Rates, step_bound
from transect.analysis.groups import Floors, group_records
from transect.analysis.hardware import benchmark_values
from transect.analysis.labels import group_labels
from transect.analysis.load import load_records
from transect.analysis.originals import Originals
from transect.analysis.scaling import ScalingKind, efficiencies
from transect.analysis.table import COLUMNS, records_table
from transect.domain.cell import Cell
from transect.domain.record import Cause, LogPoint, MetricValue, Record, Samples, Status, write_record


def train(ranks: int, rate: float, repeat: int = 0, strategy: str = "ddp", **details: Any) -> Record:
    """Make a synthetic training record on one node."""
    cell = train_cell("torch", repeat, workload="w", strategy=strategy, ranks_per_node=ranks, batch=64)
    details = {"global_batch": 64, **details}
    return bare_record(cell, {"samples_per_second": rate, "equality_ratio": 0.5}, details=details)


def test_table_has_a_row_per_metric_and_one_for_a_record_without() -> None:
    skipped = bare_record(train_cell("mxnet", batch=64), status=Status.SKIPPED, cause=Cause.UNSUPPORTED)
    table = records_table([train(2, 100.0), skipped])
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == 3
    row = table[table["status"] == "skipped"].iloc[0]
    assert row["cause"] == "unsupported"
    assert row[["metric", "value", "unit"]].isna().all()
    speed = table[table["metric"] == "samples_per_second"].iloc[0]
    assert (speed["ranks"], speed["value"], speed["unit"], speed["direction"]) == (2, 100.0, "1/s", "higher")


def test_an_empty_table_keeps_its_columns_and_types() -> None:
    table = records_table([])
    assert list(table.columns) == list(COLUMNS)
    assert table["value"].dtype == "float64"


def test_repeats_form_one_group_and_wrong_results_are_not_usable() -> None:
    wrong = train(1, 9e9, repeat=1)
    wrong = wrong.model_copy(update={"metrics": [MetricValue.of("equality_ratio", 3.0)]})
    (group,) = group_records([train(1, 100.0), wrong])
    assert len(group.records) == 2
    assert group.wrong
    assert group.values("samples_per_second") == [100.0]


def test_labels_name_only_what_differs() -> None:
    groups = group_records([train(1, 1.0), train(2, 1.0)])
    assert sorted(group_labels(groups).values()) == ["torch · ddp · 1 rank", "torch · ddp · 2 ranks"]


def test_floor_of_a_workload_without_repeats_comes_from_the_others() -> None:
    other = train_cell("torch", workload="v", batch=64)
    groups = group_records([train(1, 100.0), train(1, 110.0, 1), bare_record(other, {"samples_per_second": 5.0})])
    floor = Floors(groups).get("train", "v", "samples_per_second")
    assert floor is not None
    assert floor.relative == pytest.approx(0.1)


def test_efficiency_names_its_base_and_flags_superlinear() -> None:
    groups = group_records([train(1, 100.0, strategy="single"), train(2, 150.0), train(4, 500.0)])
    found = {one.group.cell.ranks: one for one in efficiencies(groups, None)}
    assert found[2].value == pytest.approx(0.75)
    assert found[2].base.cell.strategy == "single"
    assert found[2].base_rate == 100.0
    assert found[2].kind is ScalingKind.STRONG
    assert not found[2].superlinear
    assert found[4].superlinear


def test_an_over_subscribed_cell_has_no_efficiency() -> None:
    groups = group_records([train(1, 100.0), train(8, 700.0, over_subscribed=True)])
    assert efficiencies(groups, None) == []


def bench(name: str, value: float, threads: int, label: str | None = None) -> Record:
    """Make a synthetic benchmark record."""
    one = bare_record(bench_cell(f"{name}-probe", threads=threads))
    precision = label if name == "flops" else None
    point = LogPoint(series=label or name, precision=precision)
    return one.model_copy(update={"metrics": [MetricValue.of(name, value, label, point)]})


def test_bound_is_the_slower_side_shared_by_the_ranks_of_a_node() -> None:
    rates = Rates([bench("flops", 1e9, 2, "fp32"), bench("memory_bandwidth", 1e9, 2, "triad")])
    (group,) = group_records([train(2, 100.0, flops_per_step=1e6, bytes_per_step=1e5)])
    bound = step_bound(group, rates)
    assert bound is not None
    assert bound.kind == "arithmetic"
    assert bound.time_s == pytest.approx(2 * 1e6 / 1e9)
    assert bound.rate(64) == pytest.approx(64 / 2e-3)


def test_no_bound_without_a_benchmark_of_the_same_threads_or_precision() -> None:
    (group,) = group_records([train(2, 100.0, flops_per_step=1e6, bytes_per_step=1e5)])
    band = bench("memory_bandwidth", 1e9, 2)
    assert step_bound(group, Rates([bench("flops", 1e9, 4), band])) is None
    assert step_bound(group, Rates([bench("flops", 1e9, 2, "fp64"), band])) is None


def test_only_ok_runs_of_a_log_are_valid() -> None:
    runs = [
        {
            "status": status,
            "benchmark": "hpl",
            "file": "a.out",
            "line": 3,
            "metrics": [
                {
                    "name": "gflops",
                    "value": 2.0,
                    "unit": "Gflop/s",
                    "normalised": {"name": "flops", "value": 2e9, "unit": "FLOP/s"},
                }
            ],
        }
        for status in ("ok", "invalid", "truncated")
    ]
    found = benchmark_values([bare_record(Cell.of(stage="ingest", source="logs"), details={"runs": runs})])
    assert [one.valid for one in found] == [True, False, False]
    assert (found[0].name, found[0].value, found[0].unit) == ("flops", 2e9, "FLOP/s")
    assert found[0].where == "a.out:3"


def test_unreadable_records_and_side_files_become_problems(tmp_path: Path) -> None:
    study = tmp_path / "study"
    good = train(1, 100.0)
    good = good.model_copy(
        update={
            "samples": {
                "loss": Samples(unit="1", file="side.npz", key="loss", count=3),
                "gone": Samples(unit="1", file="gone.npz", key="loss", count=3),
                "outside": Samples(unit="1", file="../../../x.npz", key="loss", count=3),
            }
        }
    )
    folder = study / "train" / good.cell_id
    write_record(folder / "record.json", good)
    np.savez(folder / "side.npz", loss=np.array([3.0, 2.0, 1.0]))
    for name, text in (("bad~00000001", "{"), ("empty~00000002", ""), ("other~00000003", "[1]")):
        (study / "train" / name).mkdir()
        (study / "train" / name / "record.json").write_text(text)
    (study / "train" / "none~00000004").mkdir()
    loaded = load_records(study)
    assert [one.cell_id for one in loaded.records] == [good.cell_id]
    assert len(loaded.problems) == 4
    reader = Originals(loaded.folders, loaded.problems)
    assert reader.samples(loaded.records[0], "loss") == [3.0, 2.0, 1.0]
    assert reader.samples(loaded.records[0], "gone") == []
    assert reader.samples(loaded.records[0], "outside") == []
    assert len(loaded.problems) == 6
