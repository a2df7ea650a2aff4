"""From records to tables, groups, bounds, efficiencies and changes between result sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factories import bare_record, train_cell
from transect.analysis.groups import Floors, group_records
from transect.analysis.load import load_records
from transect.analysis.originals import Originals
from transect.analysis.table import COLUMNS, records_table
from transect.domain.record import Cause, MetricValue, Record, Samples, Status, write_record


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


def test_repeats_form_one_group_and_wrong_results_are_not_usable() -> None:
    wrong = train(1, 9e9, repeat=1)
    wrong = wrong.model_copy(update={"metrics": [MetricValue.of("equality_ratio", 3.0)]})
    (group,) = group_records([train(1, 100.0), wrong])
    assert len(group.records) == 2
    assert group.wrong
    assert group.values("samples_per_second") == [100.0]


def test_floor_of_a_workload_without_repeats_comes_from_the_others() -> None:
    other = train_cell("torch", workload="v", batch=64)
    groups = group_records([train(1, 100.0), train(1, 110.0, 1), bare_record(other, {"samples_per_second": 5.0})])
    floor = Floors(groups).get("train", "v", "samples_per_second")
    assert floor is not None
    assert floor.relative == pytest.approx(0.1)


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
