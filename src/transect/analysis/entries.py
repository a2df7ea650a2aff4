"""A record as the report holds it: small, and one object where records say the same.

Fifty thousand validated records with their samples, logs and provenance are gigabytes of Python
objects; a report needs their numbers and a few facts. What is left out here is read again from the
record's own file when it is shown: `transect.analysis.originals.Originals`.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.domain.record import Cause, LogPoint, MetricValue, Record, Status

# What reports show of a record's provenance; the rest changes from record to record.
_PROVENANCE = (
    "system",
    "host",
    "cpu_model",
    "sockets",
    "cores",
    "numa_nodes",
    "memory_bytes",
    "kernel",
    "cgroup",
    "gpus",
    "mpi",
    "git",
    "environment",
    "libraries",
    "variables",
)
_NODES = "SLURM_JOB_NODELIST"
_LONGEST_MESSAGE = 4000


class Measured(NamedTuple):
    """One number of a record with its unit and direction."""

    name: str
    value: float
    unit: str
    direction: Direction
    label: str | None = None
    log: LogPoint | None = None


class MetricNames:
    """What the metrics of many records are called; each record adds its values alone.

    `names` holds (name, unit, direction, label, which number of a log) in the order of the values.
    """

    __slots__ = ("names", "places")

    def __init__(self, names: Iterable[tuple[str, str, Direction, str | None, LogPoint | None]]) -> None:
        self.names = tuple(names)
        # Where the first value of a name stands, and of a name with a label.
        self.places: dict[str | tuple[str, str | None], int] = {}
        for place, (name, _, _, label, _) in enumerate(self.names):
            self.places.setdefault(name, place)
            self.places.setdefault((name, label), place)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Entry:
    """What a report needs of one record, under the names that `Record` has for it.

    `sample_names` says which series the record has, whose values `Originals` reads. `message` is cut
    after some thousand characters, `provenance` holds what reports show, and
    `parameters` no lists. `point` is the cell without its repeat. Values that many records share are
    one object: change none.
    """

    study: str
    stage: str
    cell: Cell
    point: Cell
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


def point_of(record: AnyRecord) -> Cell:
    """Return a record's cell without its repeat: the key under which repeats are compared."""
    return record.point if isinstance(record, Entry) else record.cell.without_repeat()


def labels_of(record: AnyRecord, name: str) -> set[str]:
    """Return the labels of a record's metrics of that name; an empty one where there is none."""
    if isinstance(record, Entry):
        return {label or "" for known, _, _, label, _ in record.metric_names.names if known == name}
    return {number.label or "" for number in record.metrics if number.name == name}


class Pool:
    """Keeps one of equal values made of what JSON has."""

    def __init__(self) -> None:
        self._kept: dict[bytes, Any] = {}
        self._names: dict[bytes, MetricNames] = {}
        self._points: dict[bytes, Cell] = {}
        # By what is the same object in many rows, which is kept so that its place is no other's.
        self._same: dict[int, tuple[Any, Any]] = {}

    def one(self, value: Any) -> Any:
        """Return the value that was kept first among its equals."""
        # Marshal only makes a key here, quickly; nothing is ever read from it.
        return self._kept.setdefault(marshal.dumps(value, 2), value)

    def shared(self, value: Any, make: Callable[[Any], Any]) -> Any:
        """Return what is made of a value that many rows hold as one object, once for all of them."""
        known = self._same.get(id(value))
        if known is None:
            known = self._same[id(value)] = value, make(value)
        return known[1]

    def point(self, axes: dict[str, Any]) -> Cell:
        """Return the cell of these axes, which name no repeat."""
        key = marshal.dumps(axes, 2)
        if key not in self._points:
            self._points[key] = Cell.of(**axes)
        return self._points[key]

    def names(self, given: list[list[Any]]) -> MetricNames:
        """Return the names of metrics, given as lists of name, unit, direction, label and point."""
        key = marshal.dumps(given, 2)
        if key not in self._names:
            self._names[key] = MetricNames(
                (name, unit, Direction(direction), label, None if log is None else LogPoint(**log))
                for name, unit, direction, label, log in given
            )
        return self._names[key]


def _named(number: MetricValue) -> list[Any]:
    log = None if number.log is None else number.log.model_dump()
    return [number.name, number.unit, number.direction.value, number.label, log]


def row_of(record: Record) -> dict[str, Any]:
    """Return what an entry is made from, as values that JSON can hold."""
    provenance = {key: record.provenance[key] for key in _PROVENANCE if key in record.provenance}
    slurm = record.provenance.get("slurm")
    hosts = isinstance(slurm, dict) and (slurm.get(_NODES) or slurm.get("TRANSECT_HOSTS"))
    if hosts:
        provenance["slurm"] = {_NODES: hosts}
    return {
        "study": record.study,
        "stage": record.stage,
        "cell": {**record.cell.model_dump(mode="json", exclude_defaults=True), "stage": record.cell.stage},
        "cell_id": record.cell_id,
        "status": record.status.value,
        "cause": record.cause.value if record.cause else None,
        "message": record.message[:_LONGEST_MESSAGE],
        "fingerprint": record.fingerprint,
        "inputs": record.inputs,
        "started": record.started,
        "ended": record.ended,
        "metric_names": [_named(number) for number in record.metrics],
        "metric_values": [number.value for number in record.metrics],
        "samples": sorted(record.samples),
        "details": record.details,
        "parameters": {
            key: value
            for key, value in record.parameters.items()
            if value is None or isinstance(value, (str, int, float, dict))
        },
        "provenance": provenance,
    }


def entry_of(row: dict[str, Any], pool: Pool) -> Entry:
    """Make an entry from its row. Raises ValueError, KeyError or TypeError for what is no row."""
    one = pool.one
    cell, point = _cell(row["cell"], pool)
    return Entry(
        study=one(row["study"]),
        stage=one(row["stage"]),
        cell=cell,
        point=point,
        cell_id=row["cell_id"],
        status=Status(row["status"]),
        cause=Cause(row["cause"]) if row["cause"] else None,
        message=one(row["message"]),
        fingerprint=row["fingerprint"],
        started=row["started"],
        ended=row["ended"],
        metric_names=pool.shared(row["metric_names"], pool.names),
        metric_values=array("d", row["metric_values"]),
        sample_names=one(row["samples"]),
        details={one(key): value if isinstance(value, float) else one(value) for key, value in row["details"].items()},
        parameters=one(row["parameters"]),
        provenance=pool.shared(row["provenance"], one),
    )


def _cell(axes: dict[str, Any], pool: Pool) -> tuple[Cell, Cell]:
    """Return a cell and its point. A repeat that is no count is told by the cell's own class."""
    repeat = axes.get("repeat", 0)
    if type(repeat) is not int or repeat < 0:
        cell = Cell.of(**axes)
        return cell, cell.without_repeat()
    point = pool.point({name: value for name, value in axes.items() if name != "repeat"})
    return point.changed(repeat=repeat) if repeat else point, point
