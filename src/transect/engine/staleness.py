"""Which cells of a plan would run again, and why; and the stamps of blocks, which say that all their records are there."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from transect.domain.files import write_atomic
from transect.domain.paths import StudyPaths
from transect.engine.differences import Reason
from transect.engine.repetition import repeat_until_of
from transect.engine.store import Holds, intact, state, used_limits
from transect.planning.blocks import Block
from transect.planning.plan import Planned, StudyPlan


def stamp_entry(path: Path, key: str) -> Any:
    """Return a value of a JSON file; None when nobody can read it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))[key]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _changed(path: Path) -> int:
    try:
        facts = path.stat()
    except OSError:
        return 0
    return max(facts.st_mtime_ns, facts.st_ctime_ns)


def newest_change(records: Iterable[Path]) -> int:
    """Return the time of the last change of any of these records, in ns, for their block's stamp.

    Not the stamp's own time: that may be younger than a later damage, as in a copy.
    """
    return max(map(_changed, records), default=0)


def stale_stamps(plan: StudyPlan, blocks: Iterable[Block], states: Iterable[str]) -> Iterator[Path]:
    """Yield the stamps of blocks that hold no more: for another of the blocks' `states`, or without all its records.

    Somebody deleted a record to have it again, it was damaged, or the study's limits are others now.
    """
    limits = used_limits(plan.study.limits.model_dump())
    for block, planned_state in zip(blocks, states, strict=True):
        stamp = plan.paths.stamp(block.rule, block.name)
        if not stamp.exists():
            continue
        if stamp_entry(stamp, "state") != planned_state:
            yield stamp
            continue
        same = stamp_entry(stamp, "limits") == limits
        seen = stamp_entry(stamp, "records_ns")
        looked = seen if isinstance(seen, int) else -1
        times = [_changed(plan.paths.record(*planned.key)) for planned in block.cells]
        changes = zip(block.cells, times, strict=True)
        skipped = stamp_entry(stamp, "skipped_optional") or {}
        if any(_is_broken(plan.paths, p, changed > looked, same, skipped) for p, changed in changes):
            yield stamp
        elif not same or max(times) > looked:
            _note(stamp, {"limits": limits, "records_ns": max(times)})


def _is_broken(
    paths: StudyPaths, planned: Planned, touched: bool, same_limits: bool, skipped_optional: Collection[str]
) -> bool:
    """Whether a cell has no record that holds, whatever its fingerprint says.

    A record that was not `touched` since its block was done is not read, unless others take files from that cell, or it
    was made under other limits.
    """
    path = paths.record(*planned.key)
    if not path.exists():
        return not (planned.optional and "/".join(planned.key) in skipped_optional)
    if not touched and same_limits and not planned.spec["taken"]:
        return False
    return not isinstance(intact(paths, planned.spec), Holds)


def _note(stamp: Path, looked: dict[str, Any]) -> None:
    """Note in a stamp for what its records were looked at. Its time stays: nothing was made anew."""
    with suppress(OSError):  # another user's, or one that somebody removed: its records are looked at again
        facts, content = stamp.stat(), json.loads(stamp.read_text(encoding="utf-8"))
        write_atomic(stamp, json.dumps(content | looked) + "\n")
        os.utime(stamp, ns=(facts.st_atime_ns, facts.st_mtime_ns))


class Staleness:
    """Answers for the cells of one plan; each is looked at once."""

    def __init__(self, plan: StudyPlan) -> None:
        self._plan = plan
        self._paths = StudyPaths(results=plan.paths.results.resolve(), study=plan.study.name)
        self._known: dict[tuple[str, str], Sequence[Reason]] = {}

    def __iter__(self) -> Iterator[tuple[Planned, Sequence[Reason]]]:
        """Yield every cell that would run again, with its reasons."""
        for planned in self._plan:
            if reasons := self.of(planned):
                yield planned, reasons

    def of(self, planned: Planned) -> Sequence[Reason]:
        """Return why a cell would run again; empty when its record holds."""
        if planned.key not in self._known:
            self._known[planned.key] = self._look(planned)
        return self._known[planned.key]

    def _look(self, planned: Planned) -> Sequence[Reason]:
        if planned.optional and not self._paths.record(*planned.key).exists():
            return self._unneeded(planned)
        upstream = [
            Reason("input", f"its {role}, {cell_id}, would run again")
            for role, (stage, cell_id) in planned.inputs.items()
            if self.of(self._plan.cells[stage][cell_id])
        ]
        sources = self._plan.sources
        return state(self._paths, planned.spec, upstream=upstream, sources=lambda name: sources[name].files).reasons

    def _unneeded(self, planned: Planned) -> list[Reason]:
        """Return why a repeat without a record may be needed now.

        It had one, or began, and was not skipped as not needed; or another `repeat_until` skipped it, or did
        not have it.
        """
        name = "/".join(planned.key)
        before, now = self._stamped["skipped_optional"].get(name), repeat_until_of(planned.spec)
        changed = Reason("repeat_until", "the study's `repeat_until` is another one: its comparison may be open")
        if before is not None:
            return [changed] if before != now else []
        # Its spec is written when it begins. A block that lost a record has no stamp any more.
        if name in self._stamped["completed_optional"] or self._paths.spec(*planned.key).exists():
            return [Reason("missing", "its record has gone: it runs where its comparison is open")]
        # Its cell's repeats ended when there was no such repeat: below a lower maximum.
        return [changed] if planned.cell.without_repeat().id in self._stamped["stop_reasons"] else []

    @cached_property
    def _stamped(self) -> dict[str, dict[str, str]]:
        """Return what the stamps of all blocks say of repeats, by STAGE/ID, or by the cell without its repeat."""
        stamps = sorted((self._paths.folder / "blocks").glob("*/*.json"))
        keys = ("skipped_optional", "completed_optional", "stop_reasons")
        return {key: {k: v for stamp in stamps for k, v in (stamp_entry(stamp, key) or {}).items()} for key in keys}
