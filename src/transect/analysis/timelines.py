"""Runs of one study in the order in which they were measured, and what stands in the way of that."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from transect.analysis.entries import AnyRecord, moment_of
from transect.analysis.groups import Group, grouped
from transect.analysis.log_runs import DATED, LogCell
from transect.analysis.result_sets import ResultSet, differences_of, measured
from transect.analysis.surroundings import Difference
from transect.domain.cell import Cell


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One result folder in time: `at` is the middle of its records' starts.

    `notes` say what is odd about its dates, `differences` how its machine and software differ from
    those of the run before it. `new_groups` are its groups without the records that an earlier run
    has too, as one of the same folder does: they count there.
    """

    results: ResultSet
    at: datetime
    notes: Sequence[str] = ()
    differences: Sequence[Difference] = ()
    new_groups: Mapping[Cell, Group]


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """A folder that is no run of the timeline, and why."""

    name: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """Runs by date; `left_out` are folders that cannot be placed, or hold nothing new."""

    runs: Sequence[Run]
    left_out: Sequence[LeftOut] = field(default=())


def timeline(sets: Sequence[ResultSet], now: datetime | None = None) -> Timeline:
    """Order result sets by when their records started. `now`: what is later was dated by a wrong clock.

    A set of logs alone is a run for each day that they tell. Left out are sets without a record that has a
    date, and those all of whose records stand in an earlier one too: a copy is no further run.
    """
    now = now or datetime.now(UTC)
    dated: list[tuple[datetime, int, ResultSet]] = []
    left_out: list[LeftOut] = []
    by_day = [day for results in sets for day in _by_day(results, left_out)]
    for place, result_set in enumerate(by_day):
        starts = [moment for r in result_set.loaded.records if (moment := moment_of(r.started)) is not None]
        if starts:
            middle = statistics.median_low(starts)
            dated.append((middle, place, result_set))
        else:
            why = "no record has a date" if result_set.loaded.records else "no records"
            left_out.append(LeftOut(name=result_set.name, why=why))
    runs: list[Run] = []
    known: dict[frozenset[object], str] = {}
    seen: set[Hashable] = set()
    for at, _, result_set in sorted(dated, key=lambda entry: entry[:2]):
        content = frozenset((_place(r), r.started, r.ended, r.fingerprint) for r in result_set.loaded.records)
        twin = next((name for earlier, name in known.items() if content <= earlier), None)
        if twin is not None:
            left_out.append(LeftOut(name=result_set.name, why=f"holds records of {twin} and no others"))
            continue
        known[content] = result_set.name
        before = runs[-1] if runs else None
        groups = _own(result_set, seen)
        copies = len(result_set.loaded.records) - sum(len(group.records) for group in groups.values())
        notes = _notes(result_set, before, now)
        if copies:
            notes.append(f"{copies} records stand in an earlier run, and count there alone")
        runs.append(
            Run(
                results=result_set,
                at=at,
                notes=notes,
                new_groups=groups,
                differences=_differences(before.results, result_set) if before else (),
            )
        )
    return Timeline(runs=runs, left_out=left_out)


def _by_day(logs: ResultSet, left_out: list[LeftOut]) -> list[ResultSet]:
    """Part a set of logs by the days on which these ran, where they tell more than one; others are one run."""
    if not logs.only_logs:
        return [logs]
    days = grouped(logs.loaded.records, lambda r: r.started[:10] if r.details.get(DATED) else "")
    undated = days.pop("", [])
    if len(days) < 2:
        return [logs]
    if undated:
        why = f"{len(undated)} runs: neither their logs nor the names on their path tell the day"
        left_out.append(LeftOut(name=logs.name, why=why))
    return [
        replace(logs, name=f"{logs.name}, {day}", loaded=replace(logs.loaded, records=records))
        for day, records in days.items()
    ]


def _place(record: AnyRecord) -> Hashable:
    # Which repeat a run of a log is depends on the others beside it.
    return record.stage, "" if isinstance(record.point, LogCell) else record.cell_id


def _own(results: ResultSet, seen: set[Hashable]) -> dict[Cell, Group]:
    """Return a set's groups without what was `seen`, to which it adds theirs."""
    found = {}
    for cell, group in results.groups.items():
        identities = {id(r): (_place(r), measured(r)) for r in group.records if r.started}
        new = [record for record in group.records if identities.get(id(record)) not in seen]
        seen.update(identities.values())
        if len(new) == len(group.records):
            found[cell] = group
        elif new:
            left = {id(record) for record in new}
            ok = tuple(record for record in group.ok if id(record) in left)
            found[cell] = replace(group, records=tuple(new), ok=ok)
    return found


def _differences(before: ResultSet, after: ResultSet) -> list[Difference]:
    common = ((before.groups[cell], group) for cell, group in after.groups.items() if cell in before.groups)
    return differences_of(before, after, common)


def _notes(results: ResultSet, before: Run | None, now: datetime) -> list[str]:
    notes = []
    first, last = (moment_of(text) for text in results.span)
    if results.backwards:
        notes.append(f"{results.backwards} records ended before they started: the clock was set back")
    undated = sum(moment_of(record.started) is None for record in results.loaded.records)
    if undated:
        notes.append(f"{undated} records without a date")
    if last is not None and last > now:
        notes.append("dated later than now: a clock is wrong")
    if before is not None and first is not None:
        end = moment_of(before.results.span[1])
        if end is not None and first < end:
            notes.append("began before the run before it had ended")
    return notes
