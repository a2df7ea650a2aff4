"""What was made of files, each good as long as its file stays what it was (`state_of`): one SQLite file, without locks.

It is read as it lies there and replaced as a whole: two processes at a time never see half of one, the last to end
leaves its own, and nobody waits for a lock of a network file system. One that is damaged, was made by other code or
cannot be written is done without: nothing is lost but time.
"""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from pathlib import Path
from urllib.parse import quote

from transect.domain.files import digest, writing

# A process that is killed loses what it made since this long ago.
_SAVE_S = 10.0

_TABLE = "CREATE TABLE IF NOT EXISTS kept (name BLOB PRIMARY KEY, state TEXT, text TEXT, crc INTEGER)"


class FileCache:
    """Texts by the names of what they were made of; without a file it keeps none.

    `code`: the sources of what makes the texts; what others made is not taken. `note` says what went wrong.
    """

    def __init__(self, file: Path | None, code: list[bytes]) -> None:
        self.note = ""
        self._file = file
        self._version = int(digest(code)[:7], 16)
        self._new: dict[bytes, tuple[str, str, int]] = {}
        self._old = self._opened()
        self._saved_s = time.monotonic()

    def get(self, name: bytes, state: str) -> str | None:
        """Return what was put for this very state of the file of that name, or None; nothing is known of no state."""
        found = self._new.get(name)
        if found is None and self._old is not None:
            try:
                query = "SELECT state, text, crc FROM kept WHERE name = ?"
                found = self._old.execute(query, (name,)).fetchone()
            except sqlite3.Error as error:
                self._damaged(error)
        if not state or found is None or found[0] != state:
            return None
        return found[1] if isinstance(found[1], str) and _crc(name, state, found[1]) == found[2] else None

    def put(self, name: bytes, state: str, text: str) -> None:
        """Keep what was made of a file; `state` is of a look at it before."""
        if state and self._file is not None:
            self._new[name] = (state, text, _crc(name, state, text))
            if time.monotonic() - self._saved_s > _SAVE_S:
                self.save()

    def save(self) -> None:
        """Write what is new; no room for it is no reason to stop."""
        if self._file is None or not self._new:
            return
        try:
            with writing(self._file) as stream:
                new = sqlite3.connect(f"{_uri(stream.name)}?nolock=1", uri=True)
                new.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
                if self._old is not None:
                    self._old.backup(new)
                new.executescript(f"{_TABLE}; PRAGMA user_version = {self._version}")
                rows = ((name, *kept) for name, kept in self._new.items())
                new.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", rows)
                new.commit()
                new.close()
        except (OSError, sqlite3.Error) as error:
            if self._old is not None and isinstance(error, sqlite3.Error):
                self._damaged(error)  # where nobody has looked
                self.save()
                return
            self.note, self._file = f"nothing is kept for the next time: {error}", None
        self._new.clear()
        self._old, self._saved_s = self._opened(), time.monotonic()

    def close(self) -> None:
        """Write what is new, and close the file."""
        self.save()
        if self._old is not None:
            self._old.close()

    def _opened(self) -> sqlite3.Connection | None:
        """Open what code like ours kept."""
        try:
            if self._file is None or not self._file.exists():
                return None
            # Immutable, as it is only ever replaced: SQLite takes no lock then.
            old = sqlite3.connect(f"{_uri(self._file)}?immutable=1", uri=True)
            return old if old.execute("PRAGMA user_version").fetchone() == (self._version,) else None
        except (OSError, sqlite3.Error) as error:
            self._damaged(error)
            return None

    def _damaged(self, error: Exception) -> None:
        self.note, self._old = f"what was kept is made again: {error}", None


def _uri(file: Path | str) -> str:
    return f"file:{quote(os.fsencode(file))}"


def _crc(name: bytes, state: str, text: str) -> int:
    return zlib.crc32(b"\0".join((name, state.encode(), text.encode())))
