"""Writing files so that a reader never sees half of one, and hashing them."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

T = TypeVar("T")

# One encoder: to make it takes a tenth of what a record takes to encode.
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode

# No space, over quota, over the size that a file may have (ulimit -f).
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Steps of time stamps are milliseconds, on some file systems seconds.
YOUNG_NS = 2 * 10**9


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Give a stream whose bytes become `path` at the end: temporary file in the same folder, fsync, rename.

    After an exception the old content stays. Raises OSError when the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not by tempfile, whose files are for their owner alone: who may read is the umask's to say.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomic(path: Path, data: str | bytes | Iterable[bytes]) -> None:
    """Write `data`, or its pieces, to `path` as `writing` does."""
    raw = data.encode("utf-8") if isinstance(data, str) else data
    with writing(path) as stream:
        stream.writelines((raw,) if isinstance(raw, bytes) else raw)


def write_if_changed(path: Path, text: str) -> bool:
    """Write `text` unless the file already holds it, so its time stamp means a change."""
    try:
        if path.read_text(encoding="utf-8") == text:
            return False
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    write_atomic(path, text)
    return True


def state_of(facts: os.stat_result) -> str:
    """Return what says that a file is the one that was read: inode, size, and the times of content and of any change.

    The time of content may be set back; that of any change, nobody can set. Its device is no part: a network file
    system's has another number on each host. Empty for a file that changed a moment ago, and may again within one tick
    of its clock, unseen: nothing that was made of it is to be believed at the next look.
    """
    if facts.st_ctime_ns > time.time_ns() - YOUNG_NS:
        return ""
    return f"{facts.st_ino} {facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns}"


def while_unchanged(read: Callable[[Path], T]) -> Callable[[Path], T]:
    """Keep what `read` made of a file as long as it is the same (`state_of`); beyond a process: `FileCache`.

    Its results are shared: not to be changed. Raises what `read` raises, and OSError for a file that
    is not there.
    """
    kept: dict[Path, tuple[str, T]] = {}

    @functools.wraps(read)
    def look(path: Path) -> T:
        now = state_of(path.stat())
        known = kept.get(path)
        if known is None or not now or known[0] != now:
            # Written while it is read, it has another stamp at the next look.
            kept[path] = known = (now, read(path))
        return known[1]

    return look


def canonical_json(value: Any) -> str:
    """Serialise with sorted keys and no spaces: equal values give equal text."""
    return _canonical(value)


def digest(parts: Iterable[str | bytes]) -> str:
    """SHA-256 over length-prefixed parts, so that no two lists of parts collide by joining."""
    total = hashlib.sha256()
    for part in parts:
        # A path may hold bytes that are no text.
        raw = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        total.update(str(len(raw)).encode("ascii") + b":")
        total.update(raw)
    return total.hexdigest()


def free_bytes(folder: Path) -> int:
    """Return the bytes that a user without privileges can still write on `folder`'s file system."""
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


@while_unchanged
def sha256_file(path: Path) -> str:
    """SHA-256 of a file's content, read in pieces; kept while the file stays as it is."""
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            total.update(piece)
    return total.hexdigest()
