"""Records of small cells that really ran, for tests of the sections on sharing a training.

`tests/data/co-design/records.json` holds them without samples, logs and what tells the machine, beside it the
profiles that they took. Made by

    python tests/report/co_design_records.py RESULTS/STUDY…

from folders of results: nothing in it is written by hand. What a test needs otherwise (more repeats, a
machine that was quiet, a wrong result) it changes in the open, by `changed`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from transect.domain.record import MetricValue, Record, read_record, write_record

FILE = Path(__file__).parent.parent / "data" / "co-design" / "records.json"
# Whose records sections on sharing a training read.
STAGES = ("bench", "profile", "forecast", "memory", "train")
_DETAILS = (
    "global_batch",
    "over_subscribed",
    "layout",
    "ranks",
    "quality",
    "reference_steps",
    "tolerance",
    "not_checkable_from",
    "restarts",
    "restarts_not_checkable",
    "for",
    "network",
    "pattern",
    "memory",
)


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


def _kept(record: Record) -> dict[str, Any]:
    """Return what sections read: no samples, no log, nothing that tells where it ran."""
    details = {key: value for key, value in record.details.items() if key in _DETAILS}
    kept = record.model_copy(
        update={
            "study": "co-design",
            "fingerprint": "measured",
            "log_tail": "",
            "samples": {},
            "files": {},
            "checksum": "",
            "details": details,
            "parameters": {},
            "provenance": {},
            "limits": {},
            "inputs": [],
        }
    )
    row = kept.model_dump(mode="json", exclude_defaults=True)
    row["cell"]["stage"] = record.cell.stage
    row["metrics"] = [[number.name, number.value, number.label] for number in record.metrics]
    return row


def main(folders: Sequence[str]) -> None:
    """Collect records of results into the file; of one point all repeats are the last folder's."""
    points: dict[str, list[dict[str, Any]]] = {}
    FILE.parent.mkdir(parents=True, exist_ok=True)
    for folder in map(Path, folders):
        own: dict[str, list[dict[str, Any]]] = {}
        for stage in STAGES:
            for path in sorted(folder.glob(f"{stage}/*/record.json")):
                record = read_record(path)
                own.setdefault(f"{stage}/{record.cell.without_repeat().id}", []).append(_kept(record))
        points |= own
        for path in folder.glob("profile/*/profile.json"):
            (FILE.parent / f"{path.parent.name}.json").write_bytes(path.read_bytes())
    lines = [json.dumps(row, sort_keys=True) for key in sorted(points) for row in points[key]]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
