"""Records of small cells that really ran, for tests of the sections on sharing a training.

`tests/data/co-design/records.json` holds them without samples, logs and what tells the machine, beside it the
profiles that they took. They were collected from folders of results, and nothing in them is written by hand. What a test needs otherwise (more repeats, a
machine that was quiet, a wrong result) it changes in the open, by `changed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from transect.domain.record import MetricValue, Record, write_record

FILE = Path(__file__).parent.parent / "data" / "co-design" / "records.json"


@cache
def _read() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(FILE.read_text(encoding="utf-8")))


def measured(stage: str | None = None, **axes: Any) -> list[Record]:
    """Return the records of a stage whose cells have these values on these axes."""
    found = [Record.model_validate(row | {"metrics": _metrics(row["metrics"])}) for row in _read()]
    return [
        record
        for record in found
        if stage in (None, record.stage) and all(record.cell.get(name) == value for name, value in axes.items())
    ]


def _metrics(values: list[list[Any]]) -> list[MetricValue]:
    return [MetricValue.of(name, value, label) for name, value, label in values]


def changed(
    record: Record,
    values: dict[str, float] | None = None,
    *,
    details: dict[str, Any] | None = None,
    axes: dict[str, Any] | None = None,
    **fields: Any,
) -> Record:
    """Return a record with other metrics, details, axes or fields."""
    cell = record.cell.changed(**(axes or {}))
    given = {number.name: number.value for number in record.metrics} | (values or {})
    plain = [MetricValue.of(name, value) for name, value in given.items()]
    return record.model_copy(
        update={
            "cell": cell,
            "cell_id": cell.id,
            "metrics": plain,
            "details": record.details | (details or {}),
            **fields,
        }
    )


def write_measured(study: Path, records: Iterable[Record] | None = None) -> Path:
    """Write them as a study's results, by default all."""
    for record in measured() if records is None else records:
        folder = study / record.stage / record.cell_id
        write_record(folder / "record.json", record)
        profile = FILE.parent / f"{record.cell_id}.json"
        if profile.exists():
            (folder / "profile.json").write_bytes(profile.read_bytes())
    return study
