"""Result folders beside each other: which of their cells pair, and why the others do not.

Cells pair by their identity, that is by all axes but the repeat. Two that were told unlike things
under one identity, such as another learning rate, are refused with what they differ in.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Floors, Group, group_records, grouped
from transect.analysis.labels import in_order
from transect.analysis.load import Loaded
from transect.analysis.log_runs import LogCell
from transect.analysis.sample_runs import SampleCell
from transect.analysis.settings import SOURCES, Settings, Unlike, as_json, settings_of, unlike
from transect.analysis.surroundings import Difference, Facts, differences, facts_of
from transect.domain.cell import Cell

# States of a cell that a folder has, or is to have, without a record that can be used.
PENDING = ("running", "no record yet", "damaged")
# Most cells of one side that are checked for renames: each is compared with each.
_MAX_RENAMED = 300
# Cells that differ in more axes are other cells.
_NEAR = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class ResultSet:
    """The records of one result folder. `letter` names it in tables, `name` is the folder as given.

    `margin` is what the study itself calls the same; None where no plan says that.
    """

    letter: str
    name: str
    loaded: Loaded
    margin: float | None = None

    @cached_property
    def only_logs(self) -> bool:
        """Whether it holds nothing but runs that logs tell."""
        records = self.loaded.records
        return bool(records) and all(isinstance(record.point, LogCell) for record in records)

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
            self._floors[margin] = Floors(self.groups.values(), margin)
        return self._floors[margin]

    @cached_property
    def facts(self) -> Facts:
        """What its records were measured on and with."""
        return facts_of(self.loaded.records)

    @cached_property
    def span(self) -> tuple[str, str]:
        """When its first record started and its last ended; empty without any."""
        records = self.loaded.records
        started = min((record.started for record in records if record.started), default="")
        return started, max((record.ended for record in records), default="")

    @cached_property
    def backwards(self) -> int:
        """How many records ended before they started: the clock was set back."""
        return sum(record.ended < record.started for record in self.loaded.records)

    @cached_property
    def _sources(self) -> dict[str | None, list[AnyRecord]]:
        made = (record for record in self.loaded.records if record.stage in SOURCES)
        return grouped(made, lambda record: record.point.workload)

    def settings(self, group: Group) -> Settings:
        """Return what the repeats of a group were told, and what their data and model were."""
        workload = group.cell.workload
        return settings_of(group, () if workload is None else self._sources.get(workload, ()))

    def state_of(self, group: Group) -> str:
        """Say how the cells of another set's group stand here, where there is no record of any."""
        keys = {(record.stage, record.cell_id) for record in group.records}
        loaded = self.loaded
        damaged = [tuple(problem.where.split("/", 1)) for problem in loaded.unreadable]
        known: tuple[Iterable[tuple[str, ...]], ...] = (loaded.running, loaded.waiting, damaged, loaded.earlier)
        states = zip((*PENDING, "no longer planned"), known, strict=True)
        return next((state for state, those in states if not keys.isdisjoint(those)), "not there")


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


def differences_of(before: ResultSet, after: ResultSet, both: Iterable[tuple[Group, Group]]) -> list[Difference]:
    """Name what differs between the records of groups that `both` have; between all records, where they share none."""
    sides = list(zip(*both, strict=True))
    if not sides:
        return differences(before.facts, after.facts)
    return differences(*(facts_of(record for group in side for record in group.records) for side in sides))


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
        pairs=pairs,
        copied=copied,
        refused=refused,
        only_base=_lone(left, right, other),
        only_other=_lone(right, left, base),
    )


def _shared(pair: Pair) -> bool:
    """Whether a repeat of one side is a copy of the other side's: nothing was measured again."""
    known = {measured(r) for r in pair.base.records if r.started or isinstance(r.point, SampleCell)}
    return any(measured(record) in known for record in pair.other.records)


def without_old_logs(base: ResultSet, other: ResultSet) -> ResultSet:
    """Return the other set without runs of logs that the base has too, where a cell has new ones beside them.

    An archive of logs that grows holds those of before.
    """
    known = {measured(record) for record in base.loaded.records if isinstance(record.cell, LogCell)}
    old: set[int] = set()
    for group in other.groups.values() if known else ():
        copies = {id(record) for record in group.records if measured(record) in known}
        old |= copies if len(copies) < len(group.records) else set()
    if not old:
        return other
    records = [record for record in other.loaded.records if id(record) not in old]
    return replace(other, loaded=replace(other.loaded, records=records))


def measured(record: AnyRecord) -> tuple[Hashable, ...]:
    """Return what two records of a cell have in common when one is a copy of the other."""
    if isinstance(record.point, (LogCell, SampleCell)):
        return (record.fingerprint,)
    values = tuple((number.name, number.label, number.value) for number in record.metrics)
    return record.started, record.ended, values


def _lone(groups: Sequence[Group], others: Sequence[Group], there: ResultSet) -> list[Lone]:
    of_stage = grouped(others, lambda group: group.cell.stage)
    amounts = grouped(groups, lambda group: group.cell.stage)
    found = []
    for group in sorted(in_order(groups), key=lambda group: group.cell.stage):
        stage, near = group.cell.stage, None
        rivals = of_stage.get(stage, [])
        state = there.state_of(group)
        if state == "not there" and max(len(rivals), len(amounts[stage])) <= _MAX_RENAMED:
            near = _nearest(group.cell, [rival.cell for rival in rivals])
        found.append(
            Lone(group=group, state=state, near=near, renamed=_apart(group.cell, near) if near is not None else ())
        )
    return found


def _nearest(cell: Cell, others: Iterable[Cell]) -> Cell | None:
    """Return the one that differs in the fewest axes, two at most; none where several do."""
    apart = sorted(((len(_apart(cell, rival)), rival.id, rival) for rival in others), key=lambda found: found[:2])
    if not apart or apart[0][0] > _NEAR or (len(apart) > 1 and apart[1][0] == apart[0][0]):
        return None
    return apart[0][2]


def _apart(cell: Cell, other: Cell) -> list[tuple[str, str, str]]:
    mine, theirs = cell.model_dump(mode="json"), other.model_dump(mode="json")
    return [
        (axis, as_json(mine.get(axis)), as_json(theirs.get(axis)))
        for axis in sorted(mine.keys() | theirs.keys())
        if mine.get(axis) != theirs.get(axis)
    ]
