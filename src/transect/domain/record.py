"""A record: what one cell yields, one JSON file, always written, whatever happened."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from transect.domain.cell import AnyCell, Cell
from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest, write_atomic
from transect.domain.metrics import Direction, metric

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


class LogPoint(BaseModel):
    """Which number of which log a metric is: what its parser typed stays typed.

    `series` is the log's own name of it, without phase and size.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: int = Field(default=0, ge=0, description="place in `details.runs`")
    metric: int = Field(default=0, ge=0, description="place among that run's metrics")
    series: str
    phase: str | None = Field(default=None, description="which of several, e.g. a STREAM kernel")
    size: int | None = Field(default=None, description="message or problem size")
    precision: str | None = Field(default=None, description="`fp64` and so on, of arithmetic")


class MetricValue(BaseModel):
    """One number with its unit and direction, both from the registry."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str
    value: float
    unit: str
    direction: Direction
    label: str | None = Field(default=None, description="which of several, in words")
    log: LogPoint | None = Field(
        default=None, exclude_if=lambda point: point is None, description="of a number that a log printed: which one"
    )

    @classmethod
    def of(cls, name: str, value: float, label: str | None = None, log: LogPoint | None = None) -> MetricValue:
        """Make a value of a registered metric. Raises BadInput for an unknown name."""
        known = metric(name)
        return cls(name=name, value=float(value), unit=known.unit, direction=known.direction, label=label, log=log)


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
    details: dict[str, Any] = Field(default={}, description="facts of the stage, see docs/record.md")
    parameters: dict[str, Any] = Field(default={}, description="the spec that the cell ran with")
    provenance: dict[str, Any] = {}
    limits: dict[str, Any] = Field(default={}, description="what one cell might use when it ran")
    files: dict[str, str] = Field(
        default={}, description="SHA-256 of each file that its payload left, by its path beside the record"
    )
    checksum: str = Field(default="", description="SHA-256 of the rest of the record, see docs/record.md")

    @model_validator(mode="after")
    def _cause_matches_status(self) -> Record:
        if (self.status is Status.OK) != (self.cause is None):
            raise ValueError(f"status {self.status} with cause {self.cause}")
        return self

    @property
    def point(self) -> Cell:
        """The cell without its repeat: the key under which repeats are compared."""
        return self.cell.without_repeat()

    @property
    def repeat(self) -> int:
        """Which repeat of its point it is."""
        return self.cell.repeat

    def value(self, name: str, label: str | None = None) -> float | None:
        """Return a metric's value, or None when the record has none of that name; of several that of the median."""
        known = [number for number in self.metrics if number.name == name and label in (None, number.label)]
        median = (number for number in known if (number.label or "").endswith("_median"))
        found = next(median, known[0] if known else None)
        return None if found is None else found.value


def run_fingerprint(planned: str, inputs: Sequence[str]) -> str:
    """Return the fingerprint that a record carries: the plan's part, with `NAME CHECKSUM` of what its cell took."""
    return digest([planned, *inputs])[:16]


def checksum_of(content: dict[str, Any]) -> str:
    """Return the SHA-256 of a record's content without its `checksum`, as hexadecimal digits.

    Of its canonical form, in UTF-8: JSON with keys sorted by code points, no white space, characters
    as they are, numbers as Python's `json` writes them. Layout and order of keys do not count.
    """
    sealed = {key: value for key, value in content.items() if key != "checksum"}
    # An escape may stand for half a character, which no encoding has.
    return hashlib.sha256(canonical_json(sealed).encode("utf-8", "surrogatepass")).hexdigest()


def write_record(path: Path, record: Record) -> None:
    """Write with its checksum, atomically; a reader sees the old record or the new one."""
    try:
        text = record.model_dump_json(exclude_defaults=False).encode()
    except ValueError:
        # The name of a file may hold bytes that are no text: a question mark stands for each.
        plain = json.dumps(record.model_dump(mode="json"), ensure_ascii=False)
        text = plain.encode("utf-8", "replace")
    content = json.loads(text)
    content["checksum"] = checksum_of(content)
    write_atomic(path, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")


def raw_record(path: Path) -> dict[str, Any]:
    """Read a record as it stands, which takes a fraction of the time that `read_record` does."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    try:
        raw = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        found = f"{len(content)} bytes that are no JSON ({error})" if content else "empty"
        raise BadInput(f"{path}: {found}") from None
    if not isinstance(raw, dict):
        raise BadInput(f"{path}: not a record: expected a JSON object, found {type(raw).__name__}")
    if raw.get("checksum") != checksum_of(raw):
        raise BadInput(f"{path}: its checksum does not hold: it was changed after it was written")
    return raw


def own_record(path: Path, stage: str, cell_id: str) -> dict[str, Any]:
    """Read as `raw_record` does. Raises BadInput for the record of another cell as well."""
    raw = raw_record(path)
    if (raw.get("stage"), raw.get("cell_id")) != (stage, cell_id):
        raise BadInput(f"{path}: is the record of {raw.get('stage')}/{raw.get('cell_id')}")
    return raw


def own_seconds(record: Record) -> float:
    """Return how long a cell took, without waiting for its turns."""
    took = datetime.fromisoformat(record.ended) - datetime.fromisoformat(record.started)
    return took.total_seconds() - float(record.details.get("waited_s", 0.0))


def read_record(path: Path) -> Record:
    """Read and validate. Raises BadInput naming the file as `raw_record` does, or what is no record."""
    raw = raw_record(path)
    try:
        # The file's own bytes would be parsed a second time.
        return Record.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise BadInput(f"{path}: not a record of schema {SCHEMA_VERSION}: {where}: {first['msg']}") from None
