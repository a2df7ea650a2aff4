"""Writing files so that a reader never sees half of one, and hashing them."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = [
    "canonical_json",
    "digest",
    "free_bytes",
    "sha256_file",
    "write_atomic",
    "write_if_changed",
]


def write_atomic(path: Path, data: str | bytes) -> None:
    """Write `data` to `path`: temporary file in the same folder, fsync, rename.

    Raises OSError when the folder cannot be written; the old content then stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = data.encode("utf-8") if isinstance(data, str) else data
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_if_changed(path: Path, text: str) -> bool:
    """Write `text` unless the file already holds it, so its time stamp means a change."""
    try:
        if path.read_text(encoding="utf-8") == text:
            return False
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    write_atomic(path, text)
    return True


def canonical_json(value: Any) -> str:
    """Serialise with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(parts: Iterable[str | bytes]) -> str:
    """SHA-256 over length-prefixed parts, so that no two lists of parts collide by joining."""
    total = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8") if isinstance(part, str) else part
        total.update(str(len(raw)).encode("ascii") + b":")
        total.update(raw)
    return total.hexdigest()


def free_bytes(folder: Path) -> int:
    """Return the bytes that a user without privileges can still write on `folder`'s file system."""
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's content, read in pieces."""
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            total.update(piece)
    return total.hexdigest()
