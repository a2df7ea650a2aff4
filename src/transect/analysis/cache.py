"""What was read of each record, kept beside the records: a second report reads only new ones.

One file per study, `results/STUDY/.records-cache/rows.jsonl`: a head, then a line per record. It
is written whole and put in place at once, so two reports at a time never see half of one; the last
to end leaves its own, and both are right. Its head names the code that made it and the hash of its
lines: a file that is damaged, or made by other code, counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from transect.analysis import entries
from transect.domain import cell, metrics, record
from transect.domain.files import digest, write_atomic

# Size, times of change of content and of anything, and number of the file.
Stamp = tuple[int, int, int, int]

# A file that changed this shortly ago may change again within one tick of its clock, unseen.
_YOUNG_NS = 2 * 10**9

# Parts of a row that many rows share.
_SHARED = ("provenance", "metric_names")

_line = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


class Packed(NamedTuple):
    """A row as lines of JSON: the parts that many rows share, and what is the row's own."""

    shared: tuple[bytes, ...]
    own: bytes


def packed(row: dict[str, Any]) -> Packed:
    """Turn a row into lines."""
    own = {name: value for name, value in row.items() if name not in _SHARED}
    shared = tuple(_line(row[name]).encode("ascii") for name in _SHARED)
    return Packed(shared, _line(own).encode("ascii"))


def stamp_of(status: os.stat_result) -> Stamp:
    """Return what differs between two contents of one path, as far as a file system tells."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@lru_cache(maxsize=1)
def _code() -> str:
    """Hash of the code that rows are made by, and this file's, which lays them out."""
    sources = [__file__, *(module.__file__ for module in (entries, cell, metrics, record))]
    return digest([Path(str(source)).read_bytes() for source in sources])


class RowCache:
    """Rows of one study's records by path, each good for one stamp of its file.

    A provenance is the same in most records: it has a line of its own, and rows name its number;
    so have the names of a record's metrics.
    """

    def __init__(self, study: Path) -> None:
        self.path = study / ".records-cache" / "rows.jsonl"
        # Stamp and line of each, as they stand in the file.
        self._found: dict[str, tuple[bytes, bytes]] = {}
        self._kept: dict[str, tuple[bytes, bytes]] = {}
        self._shared: list[Any] = []
        self._numbers: dict[bytes, int] = {}
        self._changed = False
        # A file is looked at, and read, after this.
        self._began_ns = time.time_ns()
        try:
            self._read()
        except (OSError, ValueError, KeyError, TypeError):
            self._found, self._shared, self._numbers, self._changed = {}, [], {}, True

    def _read(self) -> None:
        seen = hashlib.sha256()
        with self.path.open("rb") as stream:
            head = json.loads(stream.readline())
            if head["code"] != _code():
                raise ValueError("made by other code")
            for line in stream:
                seen.update(line)
                path, stamp, text = line.rstrip(b"\n").split(b"\t", 2)
                if path:
                    self._found[path.decode()] = (stamp, text)
                else:
                    self._numbers[text] = len(self._shared)
                    self._shared.append(json.loads(text))
        if seen.hexdigest() != head["sha256"]:
            raise ValueError("damaged")

    def knows(self, path: str, stamp: Stamp) -> bool:
        """Whether there is a row of this very file."""
        kept = self._found.get(path)
        return kept is not None and kept[0] == _stamp_line(stamp)

    def get(self, path: str, stamp: Stamp) -> dict[str, Any] | None:
        """Return the row that was kept of this very file, or None."""
        if not self.knows(path, stamp):
            return None
        self._kept[path] = self._found.pop(path)
        *numbers, own = self._kept[path][1].split(b" ", len(_SHARED))
        return self._row(own, map(int, numbers))

    def keep(self, path: str) -> None:
        """Leave a row that is not asked for now where it is."""
        if path in self._found:
            self._kept[path] = self._found.pop(path)

    def put(self, path: str, stamp: Stamp, row: Packed) -> dict[str, Any]:
        """Keep a row that was just read, unless its file may still be changing; return it."""
        numbers = [self._number(line) for line in row.shared]
        if stamp[1] <= self._began_ns - _YOUNG_NS and "\t" not in path and "\n" not in path:
            line = b"%s %s" % (" ".join(map(str, numbers)).encode(), row.own)
            self._kept[path] = (_stamp_line(stamp), line)
            self._changed = True
        return self._row(row.own, numbers)

    def _row(self, own: bytes, numbers: Iterable[int]) -> dict[str, Any]:
        row: dict[str, Any] = json.loads(own)
        row.update(zip(_SHARED, map(self._shared.__getitem__, numbers), strict=True))
        return row

    def _number(self, line: bytes) -> int:
        """Return the number of a line that rows share, a new one for a new line."""
        number = self._numbers.setdefault(line, len(self._shared))
        if number == len(self._shared):
            self._shared.append(json.loads(line))
        return number

    def save(self) -> None:
        """Write what was asked for or added; a folder that takes no file is no reason to stop."""
        if not self._changed and not self._found:
            return
        seen = hashlib.sha256()
        for line in self._lines():
            seen.update(line)
        head = json.dumps({"code": _code(), "sha256": seen.hexdigest()}).encode() + b"\n"
        try:
            write_atomic(self.path, chain([head], self._lines()))
        except OSError:
            return

    def _lines(self) -> Iterator[bytes]:
        for text in self._numbers:
            yield b"\t\t%s\n" % text
        for path in sorted(self._kept):
            yield b"%s\t%s\t%s\n" % (path.encode(), *self._kept[path])


def _stamp_line(stamp: Stamp) -> bytes:
    return b"%d %d %d %d" % stamp
