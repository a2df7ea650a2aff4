"""What a cell was told: its settings, and those of the data and model that it takes."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from transect.analysis.entries import AnyRecord, inside
from transect.analysis.groups import Group
from transect.analysis.log_runs import SETTINGS_UNKNOWN, settings_unknown
from transect.training.layout import Layout

# Details that are settings of a cell, not results.
_SETTINGS = (
    "global_batch",
    "steps_per_epoch",
    "warmup_steps",
    *(f"layout.{part.name}" for part in fields(Layout)),
    "session_options",
    "quality.metric",
    "quality.target",
)
# The other settings of a payload, but for those of the machine (programs, the network) and what follows
# from the cells that take something from it, such as the number of repeats.
_SPEC_SETTINGS = "told"
_NOT_COMPARED = frozenset({"tools", "network", "dataset_paths", "repeats", "precisions", "batches", "problems"})
_PARTLY_KNOWN = "a record of an earlier version does not hold all that its payload was told: settings may differ"
# Stages whose payloads always had more settings than their parameters: older records lack them.
_WITH_SPEC_SETTINGS = frozenset({"infer", "retrain", "profile", "conformance"})
# Cells of these stages that share a workload make its data and its model.
SOURCES = ("dataset", "generated-model")
_OF_SOURCES = ("dataset", "source_sha256", "shape", "train", "test", "classes", "seed")

# Parameters of a benchmark's log that are its problem's size; others are times and what came out.
_SIZE = re.compile(r"(?:^|_)(?:n|nb|p|q|nprow|npcol|size|iterations|threads|processes|ranks)$", re.I)

# Names of settings, each with the values that occur in each repeat, as JSON. What does not belong to a
# repeat stands under `_EVERY`.
Settings = Mapping[str, Mapping[int, frozenset[str]]]
_EVERY = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Unlike:
    """A setting in which two cells of one identity differ, with the values of each as JSON."""

    name: str
    base: str
    other: str


def settings_of(group: Group, sources: Iterable[AnyRecord]) -> Settings:
    """Return the settings of a group's repeats; `sources` made the data and model of its workload."""
    known: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for record in group.ok or group.records:
        repeat = record.repeat
        for name, value in _flat("", record.parameters):
            known[name][repeat].add(value)
        for name, value in _spec_settings(record):
            known[f"spec.{name}"][repeat].add(value)
        for name in _SETTINGS:
            value = inside(record.details, name)
            if value is not None:
                known[name][repeat].add(as_json(value))
        for name, size in _sizes(record.details.get("runs")):
            known[name][repeat].add(as_json(size))
    if group.cell.stage not in SOURCES:
        for record in sources:
            for name in _OF_SOURCES:
                if record.details.get(name) is not None:
                    known[f"{record.stage} {name}"][_EVERY].add(as_json(record.details[name]))
    return {
        name: {repeat: frozenset(texts) for repeat, texts in by_repeat.items()} for name, by_repeat in known.items()
    }


def settings_doubt(*groups: Group) -> str:
    """Say why settings of these groups may differ unseen, or nothing: a record of an earlier version lacks what others hold."""
    records = [record for group in groups for record in group.ok]
    all_hold = all(isinstance(record.details.get(_SPEC_SETTINGS), Mapping) for record in records)
    if not all_hold and any(record.stage in _WITH_SPEC_SETTINGS or _spec_settings(record) for record in records):
        return _PARTLY_KNOWN
    return SETTINGS_UNKNOWN if any(settings_unknown(group.cell) for group in groups) else ""


def _spec_settings(record: AnyRecord) -> list[tuple[str, str]]:
    """Return what a payload was told besides its parameters, as far as two machines have it in common."""
    return [
        (name, value)
        for name, value in _flat("", record.details.get(_SPEC_SETTINGS) or {})
        if name.partition(".")[0] not in _NOT_COMPARED
    ]


def unlike(base: Settings, other: Settings) -> list[Unlike]:
    """Name the settings that both sides have and that differ, repeat by repeat where they share any.

    One that only one side has comes from another version, and is no difference.
    """
    found = []
    for name in sorted(base.keys() & other.keys()):
        common = base[name].keys() & other[name].keys()
        mine, theirs = (_union(side[name], common or side[name]) for side in (base, other))
        # Without a common repeat, a difference among repeats is no difference of the two sides.
        if mine != theirs and (common or len(mine) == len(theirs) == 1):
            found.append(Unlike(name=name, base=" or ".join(sorted(mine)), other=" or ".join(sorted(theirs))))
    return found


def _union(by_repeat: Mapping[int, frozenset[str]], repeats: Iterable[int]) -> frozenset[str]:
    return frozenset().union(*(by_repeat[repeat] for repeat in repeats))


def _flat(prefix: str, value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, Mapping):
        return [(prefix, as_json(value))]
    return [pair for key, inner in value.items() for pair in _flat(f"{prefix}.{key}" if prefix else str(key), inner)]


def _sizes(runs: Any) -> list[tuple[str, int]]:
    """Return the sizes of the problems that a benchmark's log tells, by run."""
    return [
        (f"run {number} {name}", value)
        for number, run in enumerate(runs if isinstance(runs, list) else ())
        if isinstance(given := inside(run, "parameters"), Mapping)
        for name, value in given.items()
        if isinstance(value, int) and not isinstance(value, bool) and _SIZE.search(str(name))
    ]


def as_json(value: Any) -> str:
    """Return a setting as text that can be compared."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
