"""A record: what one cell yields, one JSON file, always written, whatever happened."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from transect.domain.cell import AnyCell
from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.domain.metrics import Direction, metric

__all__ = [
    "INLINE_SAMPLES",
    "SCHEMA_VERSION",
    "Cause",
    "MetricValue",
    "Record",
    "Samples",
    "Status",
    "read_record",
    "write_record",
]

SCHEMA_VERSION = 1

# Longer series go into a side file, so that a record stays readable.
INLINE_SAMPLES = 4096


class Status(StrEnum):
    """How a cell ended."""

    OK = "ok"
    SKIPPED = "skipped"
    FAILED = "failed"


class Cause(StrEnum):
    """Why a cell did not end well: a closed list."""

    UNSUPPORTED = "unsupported"
    MISSING_DEPENDENCY = "missing-dependency"
    SCHEDULER = "scheduler"
    NODE_FAILURE = "node-failure"
    OUT_OF_MEMORY = "out-of-memory"
    TIMEOUT = "timeout"
    KILLED = "killed"
    CRASH = "crash"
    WRONG_RESULT = "wrong-result"
    DIVERGED = "diverged"
    BAD_INPUT = "bad-input"


class MetricValue(BaseModel):
    """One number with its unit and direction, both from the registry."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str
    value: float
    unit: str
    direction: Direction
    label: str | None = Field(default=None, description="which of several, e.g. a STREAM kernel")

    @classmethod
    def of(cls, name: str, value: float, label: str | None = None) -> MetricValue:
        """Make a value of a registered metric. Raises BadInput for an unknown name."""
        known = metric(name)
        return cls(
            name=name, value=float(value), unit=known.unit, direction=known.direction, label=label
        )


class Samples(BaseModel):
    """Raw samples of one series, inline or in a `.npz` side file next to the record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: str
    values: list[float] | None = None
    file: str | None = None
    key: str | None = None
    count: int

    @model_validator(mode="after")
    def _one_place(self) -> Samples:
        if (self.values is None) == (self.file is None):
            raise ValueError("samples are either inline `values` or in a side `file`")
        return self


class Record(BaseModel):
    """Everything that is known about one run of one cell."""

    model_config = ConfigDict(extra="forbid")

    schema_version: int = SCHEMA_VERSION
    study: str
    stage: str
    cell: AnyCell
    cell_id: str
    status: Status
    cause: Cause | None = None
    message: str = ""
    log_tail: str = ""
    fingerprint: str
    inputs: list[str] = Field(
        default=[], description="`NAME CHECKSUM` of what the cell took from other cells and files"
    )
    started: str = Field(description="UTC, ISO 8601")
    ended: str = Field(description="UTC, ISO 8601")
    metrics: list[MetricValue] = []
    samples: dict[str, Samples] = {}
    details: dict[str, Any] = Field(
        default={}, description="facts of the stage, see docs/record.md"
    )
    parameters: dict[str, Any] = Field(default={}, description="the spec that the cell ran with")
    provenance: dict[str, Any] = {}

    @model_validator(mode="after")
    def _cause_matches_status(self) -> Record:
        if (self.status is Status.OK) != (self.cause is None):
            raise ValueError(f"status {self.status} with cause {self.cause}")
        return self

    def value(self, name: str, label: str | None = None) -> float | None:
        """Return a metric's value, or None when the record has none of that name."""
        for number in self.metrics:
            if number.name == name and (label is None or number.label == label):
                return number.value
        return None


def write_record(path: Path, record: Record) -> None:
    """Write atomically; a reader sees the old record or the new one."""
    try:
        text = record.model_dump_json(indent=1, exclude_defaults=False).encode()
    except ValueError:
        # The name of a file may hold bytes that are no text: a question mark stands for each.
        plain = json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False)
        text = plain.encode("utf-8", "replace")
    write_atomic(path, text + b"\n")


def read_record(path: Path) -> Record:
    """Read and validate. Raises BadInput naming the file when it is no record."""
    try:
        return Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(f"{path}: no such record") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise BadInput(
            f"{path}: not a record of schema {SCHEMA_VERSION}: {where}: {first['msg']}"
        ) from None
