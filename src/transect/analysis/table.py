"""The one table of results: a row per record and metric."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from transect.domain.record import MetricValue, Record

__all__ = ["COLUMNS", "records_table"]

_INTEGERS = ("nodes", "ranks", "threads", "batch", "shards", "repeat")

COLUMNS = (
    "study", "stage", "cell", "workload", "framework", "strategy", "runtime", "provider",
    "exporter", "benchmark", "source", "device", "nodes", "ranks", "threads", "batch", "precision",
    "network", "reduce", "learning_rate_rule", "input", "shards", "repeat", "status", "cause", "metric", "label", "value", "unit", "direction",
)  # fmt: skip


def records_table(records: Iterable[Record]) -> pd.DataFrame:
    """Tidy table with the columns `COLUMNS`, sorted by stage, cell, metric and label.

    `value` is a float in the unit that stands beside it. A record without metrics has one row
    with `metric` missing, so that no failed or skipped cell drops out of the table.
    """
    rows: list[dict[str, Any]] = []
    for record in records:
        rows += [_row(record, one) for one in record.metrics] or [_row(record, None)]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    for column in COLUMNS:
        if column in _INTEGERS:
            table[column] = table[column].astype("Int64")
        elif column == "value":
            table[column] = table[column].astype("float64")
        else:
            table[column] = table[column].astype("string")
    order = ["stage", "cell", "metric", "label"]
    return table.sort_values(order, kind="stable", na_position="last").reset_index(drop=True)


def _row(record: Record, one: MetricValue | None) -> dict[str, Any]:
    cell = record.cell
    return {
        "study": record.study,
        "stage": record.stage,
        "cell": record.cell_id,
        "workload": cell.workload,
        "framework": cell.framework,
        "strategy": cell.strategy,
        "runtime": cell.runtime,
        "provider": cell.provider,
        "exporter": cell.exporter,
        "benchmark": cell.benchmark,
        "source": cell.source,
        "device": cell.device,
        "nodes": cell.nodes,
        "ranks": cell.ranks,
        "threads": cell.threads,
        "batch": cell.batch,
        "precision": cell.precision,
        "network": cell.network,
        "reduce": cell.reduce,
        "learning_rate_rule": cell.learning_rate_rule,
        "input": cell.input,
        "shards": cell.shards,
        "repeat": cell.repeat,
        "status": record.status.value,
        "cause": record.cause.value if record.cause else None,
        "metric": one.name if one else None,
        "label": one.label if one else None,
        "value": one.value if one else None,
        "unit": one.unit if one else None,
        "direction": one.direction.value if one else None,
    }
