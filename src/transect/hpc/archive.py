"""Reads an archive of logs, and a second time only what changed.

What a file gave is kept by its facts (inode, size, time of content, time of any change) and by the sources of all that
reads it, in an SQLite database of the user's cache folder. A cache that cannot be read or written is reported once;
without it nothing is lost but time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from transect.domain.files import sha256_file
from transect.domain.registry import plugin_folders
from transect.hpc.base import PARSERS, Run
from transect.hpc.ingest import UNREADABLE, read_file
from transect.hpc.refusal import Refusal
from transect.hpc.sources import find_files
from transect.hpc.table import runs_from_json, to_json

# Told after each file: files read, files in all, bytes so far, how many came from the cache.
Progress = Callable[[int, int, int, int], None]

_TABLE = "CREATE TABLE IF NOT EXISTS runs (path TEXT PRIMARY KEY, facts TEXT NOT NULL, runs TEXT NOT NULL)"
_LOCKED_S = 10.0
# Files kept in one transaction: one for each would cost more than reading it, and a run that is killed keeps the others.
_COMMIT = 500
# Time stamps have steps of milliseconds, on some file systems of a second: what was written later than this may be
# written again without a trace in them, and counts by its content.
_SETTLED_NS = 2 * 10**9


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """All runs of an archive, in the order of its files; `known` files came from the cache."""

    runs: list[Run]
    files: int
    known: int
    bytes: int
    note: str = ""


def sources_hash() -> str:
    """Return what changes with any source that reads logs, those of plug-ins included."""
    folder = Path(__file__).parent
    files = {*folder.rglob("*.py"), folder.parent / "domain" / "metrics.py"}
    for name in PARSERS:
        module = sys.modules.get(type(PARSERS.get(name)).__module__)
        if module is not None and module.__file__:
            files.add(Path(module.__file__))
    for place in plugin_folders():
        files |= {*place.rglob("*.py")}  # what they import from beside them
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _facts(path: Path) -> tuple[str, int]:
    try:
        status = path.stat()
        facts = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        text = " ".join(map(str, facts))
        if stat.S_ISREG(status.st_mode) and time.time_ns() - status.st_ctime_ns < _SETTLED_NS:
            text += f" {sha256_file(path)}"
    except OSError:
        return "", 0
    return text, status.st_size


class _Cache:
    """Runs by path. Of no use (`note` says why) where the database is not to be had."""

    def __init__(self, file: Path | None) -> None:
        self.note = ""
        self._connection: sqlite3.Connection | None = None
        self._waiting: list[tuple[bytes, str, str]] = []
        self._file = file
        if file is None:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            for older in file.parent.glob("logs-*.sqlite*"):
                if not older.name.startswith(file.name):
                    older.unlink(missing_ok=True)  # of sources that are not these
            self._connection = sqlite3.connect(file, timeout=_LOCKED_S)
            self._connection.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.note = f"nothing is kept for the next time: {error}"
        self._connection = None
        # Damaged, and no one's lock: the next call makes it anew.
        if type(error) is sqlite3.DatabaseError and self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink()

    def get(self, path: bytes, facts: str) -> list[Run] | None:
        if self._connection is None or not facts:
            return None
        try:
            query = "SELECT runs FROM runs WHERE path = ? AND facts = ?"
            row = self._connection.execute(query, (path, facts)).fetchone()
            return None if row is None else runs_from_json(row[0])
        except ValueError:
            return None  # read and kept again
        except sqlite3.Error as error:
            self._give_up(error)
            return None

    def put(self, path: bytes, facts: str, runs: Sequence[Run]) -> None:
        # What keeps a file from being read (rights, a file server) may go without a change of the file.
        unread = any(run.line == 0 and run.reason.startswith(UNREADABLE) for run in runs)
        if self._connection is None or not facts or unread:
            return
        self._waiting.append((path, facts, to_json(runs)))
        if len(self._waiting) >= _COMMIT:
            self._commit()

    def close(self) -> None:
        """Keep what is left."""
        self._commit()
        if self._connection is not None:
            self._connection.close()

    def _commit(self) -> None:
        if self._connection is None:
            return
        try:
            with self._connection:
                self._connection.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", self._waiting)
        except sqlite3.Error as error:
            self._give_up(error)
        self._waiting.clear()


def read_archive(
    paths: Sequence[Path],
    *,
    refusal: Refusal | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Archive:
    """Return all runs under `paths` as `ingest` does, from `cache` (a folder) what has not changed since.

    Raises BadInput for a path that is not there.
    """
    files = find_files(paths)
    kept = _Cache(None if cache is None else cache / f"logs-{sources_hash()[:16]}.sqlite")
    rules, runs = refusal or Refusal(), list[Run]()
    known = size = 0
    with contextlib.closing(kept):
        for number, (found, was_known, bytes_read) in enumerate(_each(files, kept), 1):
            known += was_known
            size += bytes_read
            runs += [rules.judged(run) for run in found]
            if progress is not None:
                progress(number, len(files), size, known)
    return Archive(runs=runs, files=len(files), known=known, bytes=size, note=kept.note)


def _each(files: Sequence[Path], kept: _Cache) -> Iterator[tuple[list[Run], bool, int]]:
    for path in files:
        facts, size = _facts(path)
        place = os.fsencode(os.path.realpath(path))  # a name may be no text
        found = kept.get(place, facts)
        if found is not None:
            # The same file may be read by another name.
            name = os.fsencode(path).decode("utf-8", "replace")
            yield [run.model_copy(update={"file": name}) for run in found], True, size
            continue
        runs = list(read_file(path))
        # What was written to while it was read is read again next time.
        if _facts(path)[0] == facts:
            kept.put(place, facts, runs)
        yield runs, False, size
