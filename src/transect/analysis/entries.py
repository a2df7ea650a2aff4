"""A record as the report keeps it: small, with shared objects for equal content.

Fifty thousand validated records with their samples, logs and provenance are gigabytes of Python
objects; a report needs their numbers and a few facts. What is left out here is read again from the
record's own file when it is shown: `transect.analysis.originals.Originals`.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.domain.record import Cause, LogPoint, MetricValue, Record, Status

# A stage and a cell's id: the two folders that hold a record.
Key = tuple[str, str]

# Facts of a machine and its software at their paths in the provenance, in the order in which a reader asks.
MACHINE = (
    "system.name",
    "host",
    "cpu_model",
    "sockets",
    "cores",
    "numa_nodes",
    "memory_bytes",
    "gpus",
    "kernel",
    "cgroup",
)
SOFTWARE = ("git.commit", "git.dirty", "mpi")
# What reports show of a record's provenance; the rest changes from record to record.
_PROVENANCE = (
    *dict.fromkeys(path.partition(".")[0] for path in (*MACHINE, *SOFTWARE)),
    "environment",
    "libraries",
    "variables",
)
_NODES = "SLURM_JOB_NODELIST"

# Nothing here holds itself.
_text = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
_MAX_MESSAGE_LENGTH = 4000


def moment_of(text: str) -> datetime | None:
    """Read a time of a record, in UTC, as one without a zone is meant; None where nobody can read it."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def inside(facts: Any, path: str) -> Any:
    """Return what stands at a path such as `git.commit`; None when nothing does."""
    for part in path.split("."):
        facts = facts.get(part) if isinstance(facts, Mapping) else None
    return facts


class Measured(NamedTuple):
    """One number of a record with its unit and direction."""

    name: str
    value: float
    unit: str
    direction: Direction
    label: str | None = None
    log: LogPoint | None = None


class MetricNames:
    """The names of the metrics of many records; each record adds only its values.

    `names` holds (name, unit, direction, label, which number of a log) in the order of the values.
    """

    __slots__ = ("names", "places")

    def __init__(self, names: Iterable[tuple[str, str, Direction, str | None, LogPoint | None]]) -> None:
        self.names = tuple(names)
        # Where the value of a name stands, of several that of the median or the first, and of a name with a label.
        self.places: dict[str | tuple[str, str | None], int] = {}
        for place, (name, _, _, label, _) in enumerate(self.names):
            self.places.setdefault(name, place)
            self.places.setdefault((name, label), place)
            if label is not None and label.endswith("_median"):
                self.places[name] = self.places[name, label]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Entry:
    """What a report needs of one record, under the names that `Record` has for it.

    `sample_names` says which series the record has, whose values `Originals` reads. `message` is cut after some
    thousand characters, `provenance` holds what reports show, and `parameters` no lists. `point` is the cell without
    its repeat. Values that many records share are one object: change none.
    """

    study: str
    stage: str
    point: Cell
    repeat: int
    cell_id: str
    status: Status
    cause: Cause | None
    message: str
    fingerprint: str
    started: str
    ended: str
    metric_names: MetricNames
    metric_values: array[float]
    sample_names: list[str]
    details: dict[str, Any]
    parameters: dict[str, Any]
    provenance: dict[str, Any]

    @property
    def cell(self) -> Cell:
        """The cell, made when it is asked for: one for each of many repeats takes kilobytes."""
        return self.point.changed(repeat=self.repeat) if self.repeat else self.point

    @property
    def metrics(self) -> list[Measured]:
        """All numbers, in the order of the record."""
        return [
            Measured(name, value, unit, direction, label, log)
            for (name, unit, direction, label, log), value in zip(
                self.metric_names.names, self.metric_values, strict=True
            )
        ]

    def value(self, name: str, label: str | None = None) -> float | None:
        """Return a metric's value, or None when the record has none of that name; any label for None."""
        place = self.metric_names.places.get(name if label is None else (name, label))
        return None if place is None else self.metric_values[place]


# What analysis and report work on; a record that was just made will do as well.
AnyRecord = Record | Entry
AnyMetric = MetricValue | Measured


def metrics_in(records: Iterable[AnyRecord]) -> set[str]:
    """Return the names of all metrics that records have."""
    shared = {
        id(names): names for r in records if (names := r.metric_names.names if isinstance(r, Entry) else r.metrics)
    }
    return {number[0] if isinstance(number, tuple) else number.name for names in shared.values() for number in names}


def labels_of(record: AnyRecord, name: str) -> set[str]:
    """Return the labels of a record's metrics of that name; an empty one where there is none."""
    if isinstance(record, Entry):
        return {label or "" for known, _, _, label, _ in record.metric_names.names if known == name}
    return {number.label or "" for number in record.metrics if number.name == name}


class Row(NamedTuple):
    """What an entry is made of: `content` holds JSON values, `shared` texts of JSON that are alike in many records."""

    content: dict[str, Any]
    shared: tuple[str, ...]


class Pool:
    """Makes one object of each text that many rows share."""

    def __init__(self) -> None:
        self.value: Callable[[str], Any] = cache(json.loads)
        self.point: Callable[[str], Cell] = cache(_point)
        self.names: Callable[[str], MetricNames] = cache(_names)


def _point(text: str) -> Cell:
    return Cell.of(**json.loads(text))


def _names(text: str) -> MetricNames:
    return MetricNames(
        (name, unit, Direction(direction), label, None if log is None else LogPoint(**log))
        for name, unit, direction, label, log in json.loads(text)
    )


def _named(number: MetricValue) -> list[Any]:
    log = None if number.log is None else number.log.model_dump()
    return [number.name, number.unit, number.direction.value, number.label, log]


def row_of(record: Record) -> Row:
    """Return what an entry is made from."""
    provenance = {key: record.provenance[key] for key in _PROVENANCE if key in record.provenance}
    slurm = record.provenance.get("slurm")
    hosts = isinstance(slurm, dict) and (slurm.get(_NODES) or slurm.get("TRANSECT_HOSTS"))
    if hosts:
        provenance["slurm"] = {_NODES: hosts}
    cell = record.cell
    # With every axis: a row is older than the defaults of the code that reads it.
    point = {**cell.model_dump(mode="json", exclude={"repeat"}), "stage": cell.stage}
    parameters = {
        key: value
        for key, value in record.parameters.items()
        if value is None or isinstance(value, (str, int, float, dict))
    }
    content = {
        "study": record.study,
        "stage": record.stage,
        "repeat": cell.repeat,
        "cell_id": record.cell_id,
        "status": record.status.value,
        "cause": record.cause.value if record.cause else None,
        "message": record.message[:_MAX_MESSAGE_LENGTH],
        "fingerprint": record.fingerprint,
        "inputs": record.inputs,
        "started": record.started,
        "ended": record.ended,
        "metrics": [number.value for number in record.metrics],
        "details": record.details,
    }
    names = [_named(number) for number in record.metrics]
    shared = (point, names, sorted(record.samples), parameters, provenance)
    return Row(content=content, shared=tuple(map(_text, shared)))


def entry_of(row: Row, pool: Pool) -> Entry:
    """Make an entry from its row. Raises ValueError, KeyError or TypeError for what is no row."""
    content = row.content
    at, names, samples, parameters, provenance = row.shared
    return Entry(
        study=sys.intern(content["study"]),
        stage=sys.intern(content["stage"]),
        point=pool.point(at),
        repeat=content["repeat"],
        cell_id=content["cell_id"],
        status=Status(content["status"]),
        cause=Cause(content["cause"]) if content["cause"] else None,
        message=sys.intern(content["message"]),
        fingerprint=content["fingerprint"],
        started=content["started"],
        ended=content["ended"],
        metric_names=pool.names(names),
        metric_values=array("d", content["metrics"]),
        sample_names=pool.value(samples),
        details={
            sys.intern(key): sys.intern(value) if isinstance(value, str) else value
            for key, value in content["details"].items()
        },
        parameters=pool.value(parameters),
        provenance=pool.value(provenance),
    )
