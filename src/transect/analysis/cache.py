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
from functools import lru_cache
from pathlib import Path
from typing import Any

from transect.analysis import entries
from transect.domain import cell, metrics, record
from transect.domain.files import digest, write_atomic

__all__ = ["RowCache", "Stamp", "stamp_of"]

# Size, times of change of content and of anything, and number of the file.
Stamp = tuple[int, int, int, int]

# A file that changed this shortly ago may change again within one tick of its clock, unseen.
_YOUNG_NS = 2 * 10**9

# Parts of a row that many rows share.
_SHARED = ("provenance", "metric_names")


def stamp_of(status: os.stat_result) -> Stamp:
    """Return what differs between two contents of one path, as far as a file system tells."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@lru_cache(maxsize=1)
def _code() -> str:
    """Hash of the code that rows are made by."""
    sources = [module.__file__ for module in (entries, cell, metrics, record)]
    return digest([Path(str(source)).read_bytes() for source in sources])


class RowCache:
    """Rows of one study's records by path, each good for one stamp of its file.

    A provenance is the same in most records: it has a line of its own, and rows name its number;
    so have the names of a record's metrics.
    """

    def __init__(self, study: Path) -> None:
        self.path = study / ".records-cache" / "rows.jsonl"
        self._found: dict[str, tuple[Stamp, bytes]] = {}
        self._shared: list[Any] = []
        self._kept: dict[str, tuple[Stamp, bytes]] = {}
        self._numbers: dict[bytes, int] = {}
        self._changed = False
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
                    size, changed, touched, number = map(int, stamp.split())
                    self._found[path.decode()] = ((size, changed, touched, number), text)
                else:
                    self._numbers[text] = len(self._shared)
                    self._shared.append(json.loads(text))
        if seen.hexdigest() != head["sha256"]:
            raise ValueError("damaged")

    def get(self, path: str, stamp: Stamp) -> dict[str, Any] | None:
        """Return the row that was kept of this very file, or None."""
        kept = self._found.get(path)
        if kept is None or kept[0] != stamp:
            return None
        self._kept[path] = self._found.pop(path)
        row: dict[str, Any] = json.loads(kept[1])
        for name in _SHARED:
            row[name] = self._shared[row[name]]
        return row

    def keep(self, path: str) -> None:
        """Leave a row that is not asked for now where it is."""
        if path in self._found:
            self._kept[path] = self._found.pop(path)

    def put(self, path: str, stamp: Stamp, row: dict[str, Any]) -> None:
        """Keep a row that was just read, unless its file may still be changing."""
        if stamp[1] > time.time_ns() - _YOUNG_NS or "\t" in path or "\n" in path:
            return
        numbers = {name: self._number(row[name]) for name in _SHARED}
        self._kept[path] = (stamp, _line({**row, **numbers}))
        self._changed = True

    def _number(self, value: Any) -> int:
        """Return the number of the line that holds a value, a new one for a new value."""
        number = self._numbers.setdefault(_line(value), len(self._shared))
        if number == len(self._shared):
            self._shared.append(value)
        return number

    def save(self) -> None:
        """Write what was asked for or added; a folder that takes no file is no reason to stop."""
        if not self._changed and not self._found:
            return
        lines = [b"\t\t%s\n" % text for text in self._numbers]
        lines += [
            b"%s\t%s\t%s\n" % (path.encode(), " ".join(map(str, stamp)).encode(), text)
            for path, (stamp, text) in sorted(self._kept.items())
        ]
        seen = hashlib.sha256()
        for line in lines:
            seen.update(line)
        head = {"code": _code(), "sha256": seen.hexdigest()}
        try:
            write_atomic(self.path, b"".join([json.dumps(head).encode() + b"\n", *lines]))
        except OSError:
            return


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")
