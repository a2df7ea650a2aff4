"""Checksums of files that were read once, each good as long as its file stays what it was."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from transect.domain.file_cache import FileCache
from transect.domain.files import sha256_file, state_of


class Checksums:
    """SHA-256 of files by folder and the hash of their name, kept in one file.

    A name may be somebody's, as that of a mail is, and results may be given away.
    """

    def __init__(self, file: Path) -> None:
        self._folder = file.parent
        self._kept = FileCache(file, [])

    def of(self, path: Path, facts: os.stat_result) -> str:
        """Return a file's checksum; `facts` are of a look at it just now. Raises OSError."""
        name, state = _key(path), state_of(facts)
        checksum = self._kept.get(name, state)
        if checksum is None:
            checksum = sha256_file(path)
            self._kept.put(name, state, checksum)
        return checksum

    def save(self) -> None:
        """Write what is new; no folder for it is no reason to stop."""
        if self._folder.is_dir():
            self._kept.save()


def _key(path: Path) -> bytes:
    folder, name = os.path.split(os.fsencode(path))
    return folder + b"/" + hashlib.sha256(name).hexdigest()[:32].encode()
