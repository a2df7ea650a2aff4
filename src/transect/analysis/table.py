"""The one table of results: a row per record and metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from transect.analysis.entries import AnyRecord
from transect.analysis.labels import other_axes
from transect.domain.cell import Cell, axes_of

__all__ = ["COLUMNS", "columns_of", "records_table", "write_parquet"]

# Columns that are always there; axes of other stages follow them.
COLUMNS = (
    "study", "stage", "cell", "workload", "framework", "strategy", "runtime", "provider",
    "exporter", "benchmark", "source", "device", "nodes", "ranks", "threads", "batch", "precision",
    "network", "container", "reduce", "learning_rate_rule", "input", "options", "memory", "memory_budget", "shards", "repeat", "status", "cause",
    "metric", "label", "value", "unit", "direction",
)  # fmt: skip

_INTEGERS = frozenset({"nodes", "ranks", "threads", "batch", "memory_budget", "shards", "repeat"})
_OF_RECORD = frozenset({"study", "stage", "cell", "ranks", "status", "cause"})
_OF_METRIC = ("metric", "label", "value", "unit", "direction")
# Columns for nodes and ranks say it already.
_LEFT_OUT = frozenset({"ranks_per_node"})

# Records that are made into rows at a time.
_AT_ONCE = 2000


def columns_of(records: Iterable[AnyRecord]) -> dict[str, str]:
    """Return the table's columns and their types: `COLUMNS`, then axes that these lack.

    An axis of a plug-in's stage has a column by its name: integers, numbers or text, whatever holds
    all its values.
    """
    seen: dict[str, set[type]] = {}
    classes: set[type[Cell]] = set()
    for record in records:
        cell = record.cell
        own = other_axes(cell)
        if type(cell) not in classes or own:
            classes.add(type(cell))
        for name in (*axes_of(type(cell)), *own):
            if name not in COLUMNS and name not in _LEFT_OUT:
                seen.setdefault(name, set()).add(type(cell.get(name)))
    types = {column: _type(column) for column in COLUMNS}
    for name, kinds in sorted(seen.items()):
        held = kinds - {type(None)}
        types[name] = "Int64" if held == {int} else "string"
        if held and held <= {int, float} and held != {int}:
            types[name] = "float64"
    return types


def _type(column: str) -> str:
    if column in _INTEGERS:
        return "Int64"
    return "float64" if column == "value" else "string"


def records_table(
    records: Sequence[AnyRecord], types: dict[str, str] | None = None
) -> pd.DataFrame:
    """Tidy table with the columns of `columns_of`, sorted by stage, cell, metric and label.

    `value` is a float in the unit that stands beside it. A record without metrics has one row
    with `metric` missing, so that no failed or skipped cell drops out of the table.
    """
    types = columns_of(records) if types is None else types
    columns: dict[str, list[Any]] = {column: [] for column in types}
    for record in records:
        shared = {column: _shared(record, column) for column in types if column not in _OF_METRIC}
        numbers: list[tuple[Any, ...]] = [
            (number.name, number.label, number.value, number.unit, number.direction.value)
            for number in record.metrics
        ] or [(None,) * len(_OF_METRIC)]
        for column, value in shared.items():
            columns[column] += [value] * len(numbers)
        for column, values in zip(_OF_METRIC, zip(*numbers, strict=True), strict=True):
            columns[column] += values
    table = pd.DataFrame({
        column: pd.Series(values, dtype=types[column]) for column, values in columns.items()
    })  # fmt: skip
    order = ["stage", "cell", "metric", "label"]
    return table.sort_values(order, kind="stable", na_position="last").reset_index(drop=True)


def _shared(record: AnyRecord, column: str) -> Any:
    """Return what a record says in all its rows."""
    if column == "cell":
        return record.cell_id
    if column == "ranks":
        return record.cell.ranks
    if column in _OF_RECORD:
        value = getattr(record, column)
        return value.value if column in ("status", "cause") and value is not None else value
    value = record.cell.get(column)
    if isinstance(value, tuple):
        return " ".join(
            "=".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value
        )
    return value if value is None or isinstance(value, (int, float, str)) else str(value)


def write_parquet(records: Sequence[AnyRecord], stream: IO[bytes]) -> None:
    """Write the table of records that are sorted by stage and cell, some thousand at a time."""
    types = columns_of(records)
    schema = pa.Schema.from_pandas(records_table([], types), preserve_index=False)
    with pq.ParquetWriter(stream, schema) as writer:
        for portion in _portions(records):
            table = records_table(portion, types)
            writer.write_table(pa.Table.from_pandas(table, schema=schema, preserve_index=False))


def _portions(records: Sequence[AnyRecord]) -> Iterator[list[AnyRecord]]:
    rest = iter(records)
    while portion := list(islice(rest, _AT_ONCE)):
        yield portion
