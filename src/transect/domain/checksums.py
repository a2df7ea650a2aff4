"""Checksums of files that were read once, each good as long as its file stays what it was."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path

from transect.domain.files import sha256_file, state_of, write_atomic

# A file that changed this shortly ago may change again within one tick of its clock, unseen.
_YOUNG_NS = 2 * 10**9


class Checksums:
    """SHA-256 of files by folder and the hash of their name, kept in one JSON file.

    A name may be somebody's, as that of a mail is, and results may be given away.

    Content that is exchanged behind an equal size and time stamp is seen nevertheless (`state_of`).
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, list[int | str]] = {}
        self._new = False
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            self._known = {str(path): list(entry) for path, entry in kept.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            pass  # each file is read again

    def of(self, path: Path, facts: os.stat_result) -> str:
        """Return a file's checksum; `facts` are of a look at it just now. Raises OSError."""
        now = [*state_of(facts)]
        name = _key(path)
        kept = self._known.get(name)
        if kept is not None and kept[:-1] == now:
            return str(kept[-1])
        checksum = sha256_file(path)
        if max(facts.st_mtime_ns, facts.st_ctime_ns) < time.time_ns() - _YOUNG_NS:
            self._known[name] = [*now, checksum]
            self._new = True
        return checksum

    def save(self) -> None:
        """Write what is new; no folder for it is no reason to stop."""
        if self._new and self._file.parent.is_dir():
            with contextlib.suppress(OSError):
                write_atomic(self._file, json.dumps(self._known, separators=(",", ":")))
                self._new = False


def _key(path: Path) -> str:
    folder, name = os.path.split(os.fsencode(path))
    hashed = hashlib.sha256(name).hexdigest()[:32]
    return f"{folder.decode('utf-8', 'backslashreplace')}/{hashed}"
