"""What was read of each record, kept in the user's cache folder: a second report reads only new ones.

An SQLite file per results folder, read without locks and replaced as a whole: two reports at a time never see half of
one, the last to end leaves its own, and nobody waits for a lock of a network file system. One that is damaged, was
made by other code or cannot be written is done without: nothing is lost but time.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from transect.analysis import entries
from transect.analysis.entries import Row
from transect.domain import cell, metrics, record
from transect.domain.errors import BadInput
from transect.domain.files import digest
from transect.domain.paths import environments_folder

# Fewer records than these are read about as soon as they are looked up.
FEW = 1000
# A file that changed this shortly ago may change again within one tick of its clock, unseen.
_YOUNG_NS = 2 * 10**9

_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS rows (path TEXT PRIMARY KEY, stamp TEXT, own TEXT, shared TEXT, crc INTEGER);
CREATE TABLE IF NOT EXISTS texts (number INTEGER PRIMARY KEY, text TEXT);
"""


def stamp_of(status: os.stat_result) -> str:
    """Return what the file system knows of a file's state: it differs when the content does."""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def index_file(results: Path) -> Path | None:
    """Return where the index of a study's folder is kept; None where the user has no cache folder."""
    try:
        name = digest([os.fsencode(results.resolve())])[:32]
        return environments_folder().parent / "records" / f"{name}.sqlite"
    except BadInput:
        return None


@lru_cache(maxsize=1)
def _version() -> int:
    """Return a number for the code that makes rows, and for this file, which lays them out."""
    sources = [__file__, *(module.__file__ for module in (entries, cell, metrics, record))]
    return int(digest([Path(str(source)).read_bytes() for source in sources])[:7], 16)


@contextmanager
def record_index(results: Path, amount: int) -> Iterator[RecordIndex]:
    """Open the index of a study of which so many records are asked for; what was put is kept at the end."""
    index = RecordIndex(index_file(results) if amount >= FEW else None)
    try:
        yield index
        index.save()
    finally:
        index.close()


class RecordIndex:
    """Rows of one study's records by path, each good for one stamp of its file; without a file it keeps none."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._began_ns = time.time_ns()
        self._old: sqlite3.Connection | None = None
        # A copy that new rows go to; it takes the place of the old one in the end.
        self._new: sqlite3.Connection | None = None
        self._copy: Path | None = None
        self._stamps: dict[str, str] = {}
        self._seen: set[str] = set()
        # What many records say alike, such as their provenance: rows name the numbers of such texts.
        self._texts: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        if file is not None and file.exists():
            try:
                self._read(file)
            except (sqlite3.Error, TypeError):
                self._old, self._stamps, self._texts, self._numbers = None, {}, {}, {}

    def _read(self, file: Path) -> None:
        # Immutable, as it is only ever replaced: SQLite takes no lock then.
        self._old = sqlite3.connect(f"file:{quote(os.fsencode(file))}?immutable=1", uri=True)
        if self._old.execute("PRAGMA user_version").fetchone() == (_version(),):
            self._texts = dict(self._old.execute("SELECT number, text FROM texts"))
            self._numbers = {text: number for number, text in self._texts.items()}
            self._stamps = dict(self._old.execute("SELECT path, stamp FROM rows"))

    def get(self, path: str, stamp: str) -> Row | None:
        """Return the row that was kept of this very file, or None."""
        if self._old is None or self._stamps.get(path) != stamp:
            return None
        try:
            query = "SELECT own, shared, crc FROM rows WHERE path = ?"
            content, shared, crc = self._old.execute(query, (path,)).fetchone()
            texts = tuple(self._texts[int(number)] for number in shared.split())
            if _crc(content, texts) != crc:
                return None
        except (sqlite3.Error, ValueError, KeyError, TypeError):
            return None
        self._seen.add(path)
        return Row(content=json.loads(content), shared=texts)

    def keep(self, path: str) -> None:
        """Leave a row that is not asked for now where it is."""
        self._seen.add(path)

    def put(self, path: str, stamp: str, row: Row) -> None:
        """Keep a row that was just read, unless its file may still be changing."""
        if self._file is None or int(stamp.split()[2]) > self._began_ns - _YOUNG_NS:
            return
        try:
            db = self._new or self._begin(self._file)
            content, numbers = json.dumps(row.content), " ".join(str(self._number(db, text)) for text in row.shared)
            kept = (path, stamp, content, numbers, _crc(content, row.shared))
            db.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?)", kept)
            self._seen.add(path)
        except (OSError, sqlite3.Error, UnicodeError):
            self._file = None

    def _begin(self, file: Path) -> sqlite3.Connection:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        os.close(handle)
        self._copy = Path(name)
        if self._stamps:
            shutil.copyfile(file, self._copy)
        self._new = sqlite3.connect(f"file:{quote(name)}?nolock=1", uri=True)
        self._new.executescript(f"{_TABLES}PRAGMA user_version = {_version()};")
        return self._new

    def _number(self, db: sqlite3.Connection, text: str) -> int:
        number = self._numbers.get(text)
        if number is None:
            number = db.execute("INSERT INTO texts (text) VALUES (?)", (text,)).lastrowid
            assert number is not None
            self._numbers[text] = number
        return number

    def save(self) -> None:
        """Put what was added in place, without rows of records that have gone; no room is no reason to stop."""
        gone = self._stamps.keys() - self._seen
        if self._file is None or (self._new is None and not gone):
            return
        with suppress(OSError, sqlite3.Error):
            db = self._new or self._begin(self._file)
            db.executemany("DELETE FROM rows WHERE path = ?", ((path,) for path in gone))
            db.commit()
            db.close()
            assert self._copy is not None
            self._copy.replace(self._file)

    def close(self) -> None:
        """Close what is open, and remove a copy that took nobody's place."""
        for connection in (self._old, self._new):
            if connection is not None:
                connection.close()
        if self._copy is not None:
            self._copy.unlink(missing_ok=True)


def _crc(content: str, texts: tuple[str, ...]) -> int:
    found = zlib.crc32(content.encode())
    for text in texts:
        found = zlib.crc32(text.encode(), found)
    return found
