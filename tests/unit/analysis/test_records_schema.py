"""The table of records holds what its schema says, and says which version that is."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factories import bare_record, train_cell
from transect.analysis.records_schema import ALWAYS, COLUMNS, EARLIER, FURTHER, VERSION, VERSION_KEY
from transect.analysis.table import write_parquet
from transect.domain.cell import Cell, axes_of, class_of
from transect.domain.record import Record
from transect.planning.stage import STAGES

ARROW = {"text": pa.large_string(), "integer": pa.int64(), "number": pa.float64()}


def written(*records: Record) -> pa.Table:
    stream = io.BytesIO()
    write_parquet(records, stream)
    return pq.read_table(stream)


def search(**axes: Any) -> Record:
    return bare_record(Cell.of(stage="search", corpus="c", search="s", kind="k", rung=1, place=2, **axes))


def test_a_written_file_has_the_columns_and_the_version_of_the_schema() -> None:
    table = written(bare_record(train_cell("torch", batch=64), {"step_time": 1.5}), search())
    assert table.schema.metadata[VERSION_KEY] == str(VERSION).encode()
    names = [column.name for column in ALWAYS]
    assert table.column_names == [*names, "corpus", "kind", "place", "rung", "search"]
    for field in table.schema:
        assert field.type == ARROW[COLUMNS[field.name].type], field.name
    assert table["value"].to_pylist() == [1.5, None], "a row for the record without a metric"


def test_every_axis_of_every_stage_stands_in_the_schema() -> None:
    axes = {name for stage in STAGES for name in axes_of(class_of(stage))}
    assert axes - {"ranks_per_node"} <= COLUMNS.keys()
    assert len(COLUMNS) == len(ALWAYS) + len(FURTHER), "no name stands twice"


def test_an_axis_that_no_cell_has_a_value_of_keeps_its_type() -> None:
    cell = Cell.of(stage="classify", corpus="c", split="s", embeddings="e", words="w", model="m", kind="k")
    schema = written(bare_record(cell)).schema
    assert schema.field("heads").type == pa.int64() and schema.field("learning_rate").type == pa.float64()


@pytest.mark.parametrize(("value", "kind"), [(1.5, pa.float64()), ("few", pa.large_string()), (3, pa.int64())])
def test_a_plug_in_may_mean_something_else_by_the_name_of_an_axis(value: Any, kind: pa.DataType) -> None:
    table = written(bare_record(Cell.of(stage="nobodys-stage", steps=value)))
    assert table.schema.field("steps").type == kind and table["steps"].to_pylist() == [value]


# Add to it, and change nothing: a column that goes, or that has another type or unit, makes a new version.
VERSION_1 = {
    "text": "study stage cell workload framework strategy runtime provider exporter benchmark source device precision "
    "network container reduce learning_rate_rule input options memory status cause metric label unit direction "
    "accumulates corpus embeddings kind loader model names optimiser rate search split stop_words view words",
    "integer 1": "nodes ranks threads batch shards repeat accumulate base_epochs epochs heads layers micro_batches place "
    "rung sessions steps together updates",
    "integer B": "memory_budget",
    "number": "value",
    "number 1": "clip learning_rate",
    "number 1/s": "load",
}


def test_no_column_changes_under_the_number_of_a_version() -> None:
    said = {name: f"{column.type} {column.unit}".strip() for name, column in COLUMNS.items()}
    fixed = {name: kind for kind, names in VERSION_1.items() for name in names.split()}
    assert VERSION == 1 and {name: said.get(name) for name in fixed} == fixed
    assert [*EARLIER] == [*range(VERSION)], "each version before is read, and what was other about it is said"
