"""The stamps of blocks: each says that all records of its block are there, and for which state."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from transect.domain.files import write_atomic
from transect.domain.paths import StudyPaths
from transect.engine.store import Holds, intact, used_limits
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
    for block, state in zip(blocks, states, strict=True):
        stamp = plan.paths.stamp(block.rule, block.name)
        if not stamp.exists():
            continue
        if stamp_entry(stamp, "state") != state:
            yield stamp
            continue
        same = stamp_entry(stamp, "limits") == limits
        seen = stamp_entry(stamp, "records_ns")
        looked = seen if isinstance(seen, int) else -1
        times = [_changed(plan.paths.record(*planned.key)) for planned in block.cells]
        told = zip(block.cells, times, strict=True)
        skipped = stamp_entry(stamp, "skipped_optional") or {}
        if any(_is_broken(plan.paths, p, changed > looked, same, skipped) for p, changed in told):
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
