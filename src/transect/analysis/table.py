"""The one table of results: a row per record and metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from transect.analysis.entries import AnyRecord, Entry
from transect.analysis.labels import other_axes
from transect.analysis.records_schema import ALWAYS, VERSION, VERSION_KEY
from transect.analysis.records_schema import COLUMNS as KNOWN
from transect.domain.cell import Cell, axes_of

# Columns that are always there; axes of other stages follow them.
COLUMNS = tuple(column.name for column in ALWAYS)

_OF_RECORD = frozenset({"study", "stage", "status", "cause"})
_DESCRIBED = ("metric", "label", "unit", "direction")
_OF_METRIC = (*_DESCRIBED, "value")
# Columns for nodes and ranks say it already.
_LEFT_OUT = frozenset({"ranks_per_node"})

_TYPES = {"text": "string", "integer": "Int64", "number": "float64"}
_HELD: dict[str, set[type]] = {"integer": {int}, "number": {int, float}}
_ARROW = {"string": pa.large_string(), "Int64": pa.int64(), "float64": pa.float64()}
_PANDAS = {pa.large_string(): pd.StringDtype(), pa.int64(): pd.Int64Dtype()}

# Records that are made into rows at a time.
_AT_ONCE = 10_000


def columns_of(records: Iterable[AnyRecord]) -> dict[str, str]:
    """Return the table's columns and their types: `COLUMNS`, then axes that these lack.

    An axis of a plug-in's stage has a column by its name: integers, numbers or text, whatever holds all its values. So
    has one that the schema knows, where values do not fit what that says.
    """
    seen: dict[str, set[type]] = {}
    for cell in {id(cell): cell for cell in (record.point for record in records)}.values():
        for name in (*_further(type(cell)), *other_axes(cell)):
            if name not in COLUMNS:
                seen.setdefault(name, set()).add(type(cell.get(name)))
    types = {column: _TYPES[KNOWN[column].type] for column in COLUMNS}
    for name, kinds in sorted(seen.items()):
        held = kinds - {type(None)}
        if name in KNOWN and (KNOWN[name].type == "text" or held <= _HELD[KNOWN[name].type]):
            types[name] = _TYPES[KNOWN[name].type]
            continue
        types[name] = "Int64" if held == {int} else "string"
        if held and held <= {int, float} and held != {int}:
            types[name] = "float64"
    return types


@cache
def _further(kind: type[Cell]) -> list[str]:
    """Return the axes of a class of cells that `COLUMNS` lacks."""
    return [name for name in axes_of(kind) if name not in COLUMNS and name not in _LEFT_OUT]


def write_parquet(records: Sequence[AnyRecord], stream: IO[bytes]) -> None:
    """Write the tidy table of records that are sorted by stage and cell, some thousand at a time.

    Its columns are those of `columns_of`, described in `records_schema`, whose version the file tells; its rows are
    sorted by stage, cell, metric and label. `value` is a float in the unit that stands beside it. A record without
    metrics has one row with `metric` missing, so that no failed or skipped cell drops out of the table.
    """
    types = columns_of(records)
    # With what pandas reads its own types back by.
    schema = pa.Schema.from_pandas(_arrow([], types).to_pandas(types_mapper=_PANDAS.get), preserve_index=False)
    schema = schema.with_metadata({**schema.metadata, VERSION_KEY: str(VERSION).encode()})
    with pq.ParquetWriter(stream, schema) as writer:
        for first in range(0, len(records), _AT_ONCE):
            writer.write_table(_arrow(records[first : first + _AT_ONCE], types).cast(schema))


def _arrow(records: Sequence[AnyRecord], types: dict[str, str]) -> pa.Table:
    """Make the rows of records column by column; those of one record follow metric and label."""
    described: dict[str, list[Any]] = {column: [] for column in _OF_METRIC}
    counts = []
    # Records share names: the places of their values, and what their rows say.
    known: dict[int, tuple[list[int], list[tuple[Any, ...]]]] = {}
    for record in records:
        places, columns = _ordered(record, known)
        numbers = record.metric_values if isinstance(record, Entry) else [number.value for number in record.metrics]
        described["value"] += [numbers[place] for place in places] or [None]
        for column, texts in zip(_DESCRIBED, columns, strict=True):
            described[column] += texts
        counts.append(max(1, len(places)))
    repeats = pa.array(np.repeat(np.arange(len(records)), counts))
    axes = [{**vars(record.point), **other_axes(record.point), "repeat": record.repeat} for record in records]
    return pa.table(
        {
            column: pa.array(described[column], _ARROW[kind])
            if column in _OF_METRIC
            else _repeated(_column(column, records, axes, kind), repeats, _ARROW[kind])
            for column, kind in types.items()
        }
    )


def _repeated(values: list[Any], repeats: pa.Array, kind: pa.DataType) -> pa.Array:
    # Most axes are the same in all cells of a stage.
    if values and values.count(values[0]) == len(values):
        return pa.repeat(pa.scalar(values[0], kind), len(repeats))
    return pa.array(values, kind).take(repeats)


def _column(column: str, records: Sequence[AnyRecord], axes: Sequence[dict[str, Any]], kind: str) -> list[Any]:
    """Return what each record says in all its rows."""
    if column == "cell":
        values: list[Any] = [record.cell_id for record in records]
    elif column == "ranks":
        values = [record.point.ranks for record in records]
    elif column in _OF_RECORD:
        values = [getattr(record, column) for record in records]
    else:
        values = [point.get(column) for point in axes]
    if kind != "string":
        return values
    return [v if v is None or type(v) is str else _text(v) for v in values]


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join("=".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value)
    return str(value)


def _ordered(
    record: AnyRecord, known: dict[int, tuple[list[int], list[tuple[Any, ...]]]]
) -> tuple[list[int], list[tuple[Any, ...]]]:
    """Return the places of a record's metrics by name and label, and the columns that say what they are."""
    shared = id(record.metric_names) if isinstance(record, Entry) else id(record)
    if shared not in known:
        rows: list[tuple[str | None, ...]] = [(m.name, m.label, m.unit, m.direction.value) for m in record.metrics]
        places = sorted(range(len(rows)), key=lambda n: (rows[n][0], rows[n][1] is None, rows[n][1] or ""))
        known[shared] = places, list(zip(*([rows[n] for n in places] or [(None,) * 4]), strict=True))
    return known[shared]
