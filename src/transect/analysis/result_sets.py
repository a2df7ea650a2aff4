"""Result folders beside each other: which of their cells pair, and why the others do not.

Cells pair by their identity, that is by all axes but the repeat. Two that were told unlike things
under one identity, such as another learning rate, are refused with what they differ in.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Floors, Group, group_records, grouped
from transect.analysis.labels import axis_order
from transect.analysis.load import Loaded
from transect.analysis.surroundings import Facts, facts_of
from transect.domain.cell import Cell
from transect.domain.until import Aims

__all__ = ["Lone", "Pair", "Pairing", "Refused", "ResultSet", "Unlike", "pair_up", "unlike"]

# Details that say what a cell was told, and not what came of it.
_SETTINGS = (
    "global_batch", "steps_per_epoch", "warmup_steps", "layout", "session_options", "quality.metric", "quality.target",
)  # fmt: skip
# Cells of these stages that share a workload make its data and its model.
_SOURCES = ("data", "model")
_OF_SOURCES = ("dataset", "source_sha256", "shape", "train", "test", "classes", "seed")

# Parameters of a benchmark's log that are its problem's size; others are times and what came out.
_SIZE = re.compile(
    r"(?:^|_)(?:n|nb|p|q|nprow|npcol|size|iterations|threads|processes|ranks)$", re.I
)

# Cells on one side for which one looks whether they were renamed: each is held beside each.
_MOST_RENAMED = 300
# Cells that differ in more axes are other cells.
_NEAR = 2

# Names of settings, each with all values that occur, as JSON.
_Settings = Mapping[str, frozenset[str]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ResultSet:
    """The records of one result folder. `letter` names it in tables, `name` is the folder as given."""

    letter: str
    name: str
    loaded: Loaded
    aims: Aims = field(default_factory=Aims)

    @cached_property
    def groups(self) -> dict[Cell, Group]:
        """Groups by their cell without repeat, in order."""
        return {group.cell: group for group in group_records(self.loaded.records)}

    @cached_property
    def _floors(self) -> dict[float, Floors]:
        return {}

    def floors(self, margin: float) -> Floors:
        """Return the noise of its own repeats, beside a margin."""
        if margin not in self._floors:
            aims = Aims(margin=margin, looks=self.aims.looks)
            self._floors[margin] = Floors(list(self.groups.values()), aims)
        return self._floors[margin]

    @cached_property
    def facts(self) -> Facts:
        """What its records were measured on and with."""
        return facts_of(self.loaded.records)

    @cached_property
    def span(self) -> tuple[str, str]:
        """When its first record started and its last ended; empty without any."""
        records = self.loaded.records
        started = min((record.started for record in records), default="")
        return started, max((record.ended for record in records), default="")

    @cached_property
    def backwards(self) -> int:
        """How many records ended before they started: the clock was set back."""
        return sum(record.ended < record.started for record in self.loaded.records)

    @cached_property
    def _sources(self) -> dict[str | None, list[AnyRecord]]:
        made = (record for record in self.loaded.records if record.stage in _SOURCES)
        return grouped(made, lambda record: record.cell.workload)

    def settings(self, group: Group) -> _Settings:
        """Return what the repeats of a group were told, and what their data and model were."""
        told: dict[str, set[str]] = defaultdict(set)
        for record in group.ok or group.records:
            for name, value in _flat("", record.parameters):
                told[name].add(value)
            for name in _SETTINGS:
                value = _inside(record.details, name)
                if value is not None:
                    told[name].add(_json(value))
            for name, size in _sizes(record.details.get("runs")):
                told[name].add(_json(size))
        if group.cell.workload is not None and group.cell.stage not in _SOURCES:
            for record in self._sources.get(group.cell.workload, ()):
                for name in _OF_SOURCES:
                    if record.details.get(name) is not None:
                        told[f"{record.stage} {name}"].add(_json(record.details[name]))
        return {name: frozenset(values) for name, values in told.items()}

    def state_of(self, group: Group) -> str:
        """Say how the cells of another set's group stand here, where there is no record of any."""
        keys = {(record.stage, record.cell_id) for record in group.records}
        names = {"/".join(key) for key in keys}
        if keys & set(self.loaded.running):
            return "running"
        if keys & set(self.loaded.waiting):
            return "no record yet"
        if any(problem.where in names for problem in self.loaded.unreadable):
            return "damaged"
        if keys & set(self.loaded.earlier):
            return "no longer planned"
        return "not there"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unlike:
    """A setting in which two cells of one identity differ, with the values of each as JSON."""

    name: str
    base: str
    other: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One cell in two sets."""

    base: Group
    other: Group


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """A pair whose settings are unlike."""

    pair: Pair
    unlike: Sequence[Unlike]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lone:
    """A group that only one set has: how it stands in the other, and what it may be called there.

    `near` differs from it in the axes of `renamed` (axis, value here, value there) alone.
    """

    group: Group
    state: str
    near: Cell | None = None
    renamed: Sequence[tuple[str, str, str]] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairing:
    """What becomes of the cells of two sets. `copied`: both sides hold the same measurement."""

    pairs: Sequence[Pair]
    copied: Sequence[Pair]
    refused: Sequence[Refused]
    only_base: Sequence[Lone]
    only_other: Sequence[Lone]


def pair_up(base: ResultSet, other: ResultSet) -> Pairing:
    """Pair the cells of two sets by identity, in order of the cells."""
    pairs: list[Pair] = []
    copied: list[Pair] = []
    refused: list[Refused] = []
    for cell, group in base.groups.items():
        if cell not in other.groups:
            continue
        pair = Pair(base=group, other=other.groups[cell])
        differing = unlike(base.settings(group), other.settings(pair.other))
        if differing:
            refused.append(Refused(pair=pair, unlike=differing))
        elif _shared(pair):
            copied.append(pair)
        else:
            pairs.append(pair)
    left = [group for cell, group in base.groups.items() if cell not in other.groups]
    right = [group for cell, group in other.groups.items() if cell not in base.groups]
    return Pairing(
        pairs=pairs, copied=copied, refused=refused,
        only_base=_lone(left, right, other), only_other=_lone(right, left, base),
    )  # fmt: skip


def unlike(base: _Settings, other: _Settings) -> list[Unlike]:
    """Name the settings that both tell and that are not one value on both sides.

    One that only a side tells is of a version that the other is not, and no difference.
    """
    return [
        Unlike(name=name, base=_either(base[name]), other=_either(other[name]))
        for name in sorted(base.keys() & other.keys())
        if base[name] != other[name] or len(base[name]) > 1
    ]


def _either(values: frozenset[str]) -> str:
    return " or ".join(sorted(values))


def _shared(pair: Pair) -> bool:
    """Whether a repeat of one side is a copy of the other side's: nothing was measured again."""
    known = {
        (record.started, record.ended, _values(record))
        for record in pair.base.records if record.started
    }  # fmt: skip
    return any(
        (record.started, record.ended, _values(record)) in known for record in pair.other.records
    )


def _values(record: AnyRecord) -> tuple[tuple[str, str | None, float], ...]:
    return tuple((number.name, number.label, number.value) for number in record.metrics)


def _lone(groups: Sequence[Group], others: Sequence[Group], there: ResultSet) -> list[Lone]:
    of_stage = grouped(others, lambda group: group.cell.stage)
    amounts = grouped(groups, lambda group: group.cell.stage)
    found = []
    for group in sorted(groups, key=lambda one: (one.cell.stage, axis_order(one.cell))):
        stage, near = group.cell.stage, None
        rivals = of_stage.get(stage, [])
        state = there.state_of(group)
        if state == "not there" and max(len(rivals), len(amounts[stage])) <= _MOST_RENAMED:
            near = _nearest(group.cell, [one.cell for one in rivals])
        found.append(
            Lone(group=group, state=state, near=near,
                 renamed=_apart(group.cell, near) if near is not None else ())
        )  # fmt: skip
    return found


def _nearest(cell: Cell, others: Iterable[Cell]) -> Cell | None:
    """Return the one that differs in the fewest axes, two at most; none where several do."""
    apart = sorted(((len(_apart(cell, other)), other.id, other) for other in others), key=_first)
    if not apart or apart[0][0] > _NEAR or (len(apart) > 1 and apart[1][0] == apart[0][0]):
        return None
    return apart[0][2]


def _first(entry: tuple[int, str, Cell]) -> tuple[int, str]:
    return entry[:2]


def _apart(cell: Cell, other: Cell) -> list[tuple[str, str, str]]:
    mine, theirs = cell.model_dump(mode="json"), other.model_dump(mode="json")
    return [
        (axis, _json(mine.get(axis)), _json(theirs.get(axis)))
        for axis in sorted(mine.keys() | theirs.keys())
        if mine.get(axis) != theirs.get(axis)
    ]


def _flat(prefix: str, value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, Mapping):
        return [(prefix, _json(value))]
    return [
        pair
        for key, inner in value.items()
        for pair in _flat(f"{prefix}.{key}" if prefix else str(key), inner)
    ]


def _sizes(runs: Any) -> list[tuple[str, int]]:
    """Return the sizes of the problems that a benchmark's log tells, by run."""
    return [
        (f"run {number} {name}", value)
        for number, run in enumerate(runs if isinstance(runs, list) else ())
        if isinstance(run, Mapping) and isinstance(run.get("parameters"), Mapping)
        for name, value in run["parameters"].items()
        if isinstance(value, int) and not isinstance(value, bool) and _SIZE.search(str(name))
    ]


def _inside(details: Mapping[str, Any], path: str) -> Any:
    value: Any = details
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
