"""What each cell was measured on and with, packed for the page: so that any two cells can be set side by side.

A study of 100,000 cells has millions of facts and few different ones: those of machine and versions are kept
once for all records that share them, axes as columns of numbers, and all of it is compressed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from transect.analysis.entries import AnyRecord
from transect.report.engine.text import clean, quantity

# Group, fact, value.
Fact = tuple[str, str, str]

# Facts that should be the same for two records to be compared, by group and path in the provenance.
FACTS = {
    "Machine": (
        "system.name",
        "system.description",
        "system.interconnect",
        "slurm.SLURM_JOB_NODELIST",
        "host",
        "cpu_model",
        "sockets",
        "cores",
        "numa_nodes",
        "memory_bytes",
        "kernel",
        "cgroup",
        "gpus",
    ),
    "Versions": ("environment.name", "environment.lock_hash", "mpi", "git.commit", "git.dirty"),
}
# What a stage tells of its own settings and versions in a record's details.
_DETAILS = {
    "session_options": "Settings",
    "provider_used": "Settings",
    "runtime_version": "Versions",
    "language_version": "Versions",
    "over_subscribed": "Result",
    "disturbed": "Result",
}
_MAX_LENGTH = 400


def fact_at(provenance: Mapping[str, Any], path: str) -> Any:
    """Return what stands at a path such as `git.commit`; None when nothing does."""
    value: Any = provenance
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return None if value in ([], {}, "") else value


def shown(fact: str, value: Any) -> str:
    """Write the value of a fact."""
    if fact.endswith("_bytes") and isinstance(value, (int, float)) and not isinstance(value, bool):
        return quantity(float(value), "B")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list, tuple)):
        return clean(json.dumps(value, sort_keys=True, ensure_ascii=False, default=str))
    return clean(str(value))


def title_of(path: str) -> str:
    """Name a fact of the provenance in words.

    >>> title_of("cpu_model")
    'CPU model'
    """
    path = path.replace("slurm.SLURM_JOB_NODELIST", "nodes of the job")
    return path.replace("_bytes", "").replace("_", " ").replace(".", " ").replace("cpu", "CPU")


def _cut(text: str) -> str:
    """Shorten what is long; what differs beyond the cut still differs, by a hash of all of it."""
    if len(text) <= _MAX_LENGTH:
        return text
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text[: _MAX_LENGTH - 20]}… (all: ~{mark})"


def _facts_of_provenance(provenance: Mapping[str, Any]) -> Iterator[Fact]:
    for group, paths in FACTS.items():
        for path in paths:
            value = fact_at(provenance, path)
            if value is not None:
                yield group, title_of(path), _cut(shown(path, value))
    for key, group in (("libraries", "Versions"), ("variables", "Settings")):
        values = provenance.get(key)
        for name, value in sorted(values.items()) if isinstance(values, dict) else ():
            yield group, clean(str(name)), _cut(shown("", value))


def facts_of_settings(given: Mapping[str, Any], group: str = "Settings", of: str = "") -> Iterator[Fact]:
    """Give what a mapping of settings holds, one fact a value; mappings within it by dotted names."""
    for key, value in sorted(given.items(), key=lambda item: str(item[0])):
        name = f"{of}{key}"
        if isinstance(value, dict):
            yield from facts_of_settings(value, group, f"{name}.")
        elif value is not None:
            yield group, clean(name), _cut(shown("", value))


def _facts_of_details(details: Mapping[str, Any]) -> Iterator[Fact]:
    for key, group in _DETAILS.items():
        if key in details and details[key] is not None:
            yield from facts_of_settings({key: details[key]}, group)


class _Pool:
    """Numbers different values in the order in which they come."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.places: dict[Any, int] = {}

    def place(self, key: Any, value: Any) -> int:
        """Return the number of a key; the value is that of its first time."""
        if key not in self.places:
            self.places[key] = len(self.values)
            self.values.append(value)
        return self.places[key]


def _names(records: Sequence[AnyRecord]) -> list[str]:
    """Return `STAGE/ID`, without the hash where the rest tells a cell apart: a command takes it as well."""
    short = [f"{record.stage}/{record.cell_id.rpartition('~')[0]}" for record in records]
    amounts = Counter(short)
    return [
        clean(name if amounts[name] == 1 and not name.endswith("/") else f"{r.stage}/{r.cell_id}")
        for name, r in zip(short, records, strict=True)
    ]


def packed(records: Sequence[AnyRecord]) -> str:
    """Pack the facts of records as base64 of deflated JSON.

    `cells` are their names; `columns` hold `group`, `fact`, `values` and, for each cell, the place
    `at` of its value; `sets` hold `facts` and `at` likewise, the facts being [group, fact, value].
    Without `at` the first is that of all cells. Equal records give equal text.
    """
    records = sorted(records, key=lambda record: (record.stage, record.cell_id))
    parts = ((lambda r: r.provenance, _facts_of_provenance), (lambda r: r.parameters, facts_of_settings))
    sets = [_set(records, value, facts) for value, facts in parts]
    sets.append(_details_set(records))
    columns = [_column("Result", "status", [record.status.value for record in records])]
    content = {"cells": _names(records), "columns": columns, "sets": [entry for entry in sets if any(entry["facts"])]}
    # Repeats of one point are alike in all other axes; most share one object.
    every = [record.point for record in records]
    points = list({id(point): point for point in every}.values())
    of_point = {id(point): place for place, point in enumerate(points)}
    at = [of_point[id(point)] for point in every]
    axes = {name for kind in {type(point) for point in points} for name in kind.model_fields}
    # A stage that is not here has an open cell, which holds whatever was there.
    axes |= {name for point in points for name in point.model_extra or ()}
    for axis in sorted(axes):
        repeats = axis == "repeat"
        values = [record.repeat for record in records] if repeats else [point.get(axis) for point in points]
        if any(value is not None for value in values):
            columns.append(_column("Settings", axis, values, None if repeats else at))
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("ascii"), 6)).decode("ascii")


def unpacked(text: str) -> dict[str, Any]:
    """Return what `packed` packed, as the page's script does."""
    content: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
    return content


def _with_places(key: str, pool: _Pool, places: list[int], **fields: Any) -> dict[str, Any]:
    made = {**fields, key: pool.values}
    return made if len(pool.values) <= 1 else made | {"at": places}


def _column(group: str, fact: str, values: Iterable[Any], at: Sequence[int] | None = None) -> dict[str, Any]:
    """Number the values of records; with `at`, which of the values is each record's."""
    # An axis has values of one type: equal ones are one.
    pool = _Pool()
    places = []
    for value in values:
        key = value if value.__hash__ is not None else repr(value)
        place = pool.places.get(key)
        if place is None:
            written = None if value is None else _cut(shown(fact, value))
            place = pool.place(key, written)
        places.append(place)
    return _with_places("values", pool, places if at is None else [places[n] for n in at], group=group, fact=fact)


def _set(
    records: Sequence[AnyRecord],
    value: Callable[[AnyRecord], Mapping[str, Any]],
    facts: Callable[[Mapping[str, Any]], Iterator[Fact]],
) -> dict[str, Any]:
    """Number what records share: most share one object, which is looked at once."""
    by_object: dict[int, tuple[Fact, ...]] = {}
    pool = _Pool()
    places = []
    for record in records:
        given = value(record)
        if id(given) not in by_object:
            by_object[id(given)] = tuple(facts(given))
        made = by_object[id(given)]
        places.append(pool.place(made, made))
    return _with_places("facts", pool, places)


def _details_set(records: Sequence[AnyRecord]) -> dict[str, Any]:
    pool = _Pool()
    places = []
    for record in records:
        made = tuple(_facts_of_details(record.details)) if _DETAILS.keys() & record.details else ()
        places.append(pool.place(made, made))
    return _with_places("facts", pool, places)
