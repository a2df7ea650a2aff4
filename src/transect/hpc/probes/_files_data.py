"""The part of the probe of files that moves data: own files and a shared one, by large, odd and small records."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transect.hpc.probes._files_store import PAGE, Record, drop
from transect.hpc.probes._files_team import Team

# Bytes of a record: large and aligned; as IO500's hard case, which fits no block; a page, anywhere.
RECORDS = {"easy": 1 << 20, "hard": 47008, "random": PAGE}
_DIRECT = getattr(os, "O_DIRECT", 0)
# The last one is synced, so that what is read next has been written out by every rank.
_WRITES = {
    "buffered-unsynced": (0, False),
    "direct-unsynced": (_DIRECT, False),
    "direct-synced": (_DIRECT, True),
    "buffered-synced": (0, True),
}


class DataSet:
    """Files of all ranks (`own`), or one file (`shared`): written in every way, then read in every way.

    `counts`: records of each rank by pattern. Each rank reads what the next one wrote, on several nodes one of
    the next node. Random records lie in the easy ones: one in each of as many equal parts.
    """

    def __init__(self, np: Any, team: Team, kind: str, counts: dict[str, int], *, direct: bool) -> None:
        self._np, self._team, self.kind, self._counts, self._direct = np, team, kind, counts, direct
        self.other = (team.rank + team.shift) % team.size
        self._writing = 0
        self._written: dict[str, int] = {}
        self._mine = {name: Record(np, size, team.rank) for name, size in RECORDS.items()}
        self._others = {name: Record(np, size, self.other) for name, size in RECORDS.items()}
        self._got = {name: Record(np, size, 0) for name, size in RECORDS.items()}
        self.wrong = dict.fromkeys(RECORDS, 0)
        # Of a pattern whose file stayed in the page cache when it was to be dropped.
        self.kept: set[str] = set()

    def _path(self, pattern: str, owner: int) -> Path:
        file = "hard" if pattern == "hard" else "easy"
        return self._team.folder / (f"{file}-{owner}" if self.kind == "own" else f"{file}-shared")

    def _offsets(self, pattern: str, owner: int) -> list[int]:
        """Return where a rank's records lie in its file, in the order of the file."""
        count, size, shared = self._counts[pattern], RECORDS[pattern], self.kind == "shared"
        if pattern == "hard":
            step, first = (self._team.size, owner) if shared else (1, 0)
            return [(number * step + first) * size for number in range(count)]
        whole = self._counts["easy"] * RECORDS["easy"]
        begin = owner * whole if shared else 0
        if pattern == "easy":
            return [begin + number * size for number in range(count)]
        width, dice = whole // PAGE // count, random.Random(owner)
        return [begin + (number * width + dice.randrange(width)) * PAGE for number in range(count)]

    def _order(self, pattern: str, owner: int) -> list[int]:
        offsets = self._offsets(pattern, owner)
        if pattern == "random":
            random.Random(self._writing * self._team.size + owner).shuffle(offsets)
        return offsets

    def write(self, pattern: str, way: str) -> float:
        """Return the seconds in which the slowest rank opened its file, wrote its records, synced and closed it."""
        flags, sync = _WRITES[way]
        self._writing += 1
        record, path = self._mine[pattern], self._path(pattern, self._team.rank)
        offsets = self._order(pattern, self._team.rank)
        stamps = record.stamps([offset // PAGE for offset in offsets], self._writing)
        if pattern != "random":
            self._renew(path)
        stamp, data, size = record.stamp, record.bytes, RECORDS[pattern]

        def work() -> None:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
            try:
                for offset, first in zip(offsets, stamps, strict=True):
                    stamp(first)
                    if os.pwrite(handle, data, offset) != size:
                        raise OSError(f"{path.name}: a record was written in part: no room, or a quota")
                if sync:
                    os.fsync(handle)
            finally:
                os.close(handle)

        seconds = self._team.phase(work)
        self._written[pattern] = self._writing
        if not sync:
            self._team.phase(lambda: _sync(path))  # what is measured next is not disturbed by it
        return seconds

    def _renew(self, path: Path) -> None:
        """Remove the file, and make a shared one before its ranks open it."""

        def work() -> None:
            if self.kind == "own" or self._team.rank == 0:
                path.unlink(missing_ok=True)
                path.touch(mode=0o600)

        self._team.phase(work)

    def read(self, pattern: str, way: str) -> float | None:
        """Return the slowest rank's seconds of reading; None where the file did not leave the page cache as it should."""
        record, path = self._got[pattern], self._path(pattern, self.other)
        offsets = self._order(pattern, self.other)
        # The stamps are those of the one who wrote.
        stamps = self._others[pattern].stamps([offset // PAGE for offset in offsets], self._written[pattern])
        if way == "dropped" and not self._team.all(lambda: drop(self._np, path)):
            self.kept.add(pattern)
            return None
        data, head, size, missed = record.bytes, record.head, RECORDS[pattern], [0]

        def work() -> None:
            handle = os.open(path, os.O_RDONLY | (_DIRECT if way == "direct" else 0))
            try:
                for offset, first in zip(offsets, stamps, strict=True):
                    if os.preadv(handle, (data,), offset) != size or head[0] != first:
                        missed[0] += 1
            finally:
                os.close(handle)

        seconds = self._team.phase(work)
        self.wrong[pattern] += missed[0]
        return seconds

    def check(self, pattern: str) -> None:
        """Compare every byte of what the other rank wrote, untimed."""
        path, expected, got = self._path(pattern, self.other), self._others[pattern], self._got[pattern]
        offsets = self._offsets(pattern, self.other)
        stamps = expected.stamps([offset // PAGE for offset in offsets], self._written[pattern])

        def work() -> None:
            handle = os.open(path, os.O_RDONLY)
            try:
                for offset, first in zip(offsets, stamps, strict=True):
                    expected.stamp(first)
                    read = os.preadv(handle, (got.bytes,), offset)
                    same = read == RECORDS[pattern] and self._np.array_equal(got.words, expected.words)
                    self.wrong[pattern] += not same
            finally:
                os.close(handle)

        self._team.phase(work)

    def remove(self) -> None:
        """Remove the files, so that never more than one set lies on the disk."""

        def work() -> None:
            for pattern in ("easy", "hard"):
                if self.kind == "own" or self._team.rank == 0:
                    self._path(pattern, self._team.rank).unlink(missing_ok=True)

        self._team.phase(work)

    def ways(self, pattern: str) -> tuple[list[str], list[str]]:
        """Return how a pattern can be written and read here: records that fit no block cannot pass the cache."""
        direct = self._direct and pattern != "hard"
        writes = [way for way in _WRITES if direct or not way.startswith("direct")]
        return writes, ["direct", "dropped", "cached"] if direct else ["dropped", "cached"]

    def round(self, keep: Callable[[str, float | None], None]) -> None:
        """Do every phase once; `keep` gets the label and the seconds of each."""
        for pattern in ("easy", "random", "hard"):
            if pattern == "hard":
                self.remove()  # as the limit is one of what lies there at a time
            writes, reads = self.ways(pattern)
            for way in writes:
                keep(f"write-{self.kind}-{pattern}-{way}", self.write(pattern, way))
            for way in reads:
                keep(f"read-{self.kind}-{pattern}-{way}", self.read(pattern, way))
            self.check(pattern)
        self.remove()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_WRONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
