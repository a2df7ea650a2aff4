"""What the probe of files asks of a file system: its kind, its room, ways past the page cache, contents that tell their place."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

PAGE = 4096
# Memory itself; and those that keep data in a memory of their own, which no call of ours drops.
_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
_OWN_CACHE = ("zfs", "fuse")
_WORD = 8
_LARGE = 1 << 18


class Unusable(Exception):
    """A folder in which nothing can be measured, in one sentence."""


def file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """Return the kind of file system that a folder lies on, such as `ext4`; `unknown` where the system does not say."""
    device = path.stat().st_dev
    try:
        lines = os.fsdecode(mounts.read_bytes()).rstrip("\n").split("\n")
    except OSError:
        return "unknown"
    where, kind = -1, "unknown"
    for fields in (line.split(" ") for line in lines):
        # Blanks and backslashes of a name are written in octal, all else as it is.
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        inside = os.path.commonpath([point, str(path.resolve())]) == point
        # Some file systems have another number than their mount: the deepest mount above counts then.
        same = fields[2] == f"{os.major(device)}:{os.minor(device)}"
        if inside and (depth := len(Path(point).parts) + 1000 * same) >= where:
            where, kind = depth, fields[fields.index("-") + 1]
    return kind


def what_bounds(path: Path, kind: str) -> tuple[str, str]:
    """Return which rates on such a file system are those of storage (`all` or `writes`), and why not all.

    Raises Unusable for one that lies in memory.
    """
    if kind in _MEMORY:
        raise Unusable(f"{path}: {kind} keeps files in memory: expected a folder on storage, see option folder")
    if kind.split(".")[0] in _OWN_CACHE:
        return "writes", f"{kind} has a cache of its own, which cannot be emptied: what is read may come from it"
    return "all", ""


def room(path: Path) -> int:
    """Bytes that may still be written into a folder."""
    return shutil.disk_usage(path).free


def aligned(size: int) -> memoryview:
    """Return zeros that begin at a page, as O_DIRECT wants them."""
    return memoryview(mmap.mmap(-1, size))


def takes_direct(folder: Path) -> bool:
    """Tell whether files of a folder can be opened and written with O_DIRECT."""
    path = folder / "direct"
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o600)
    except (OSError, AttributeError):  # refused, or a system without it
        return False
    finally:
        path.unlink(missing_ok=True)
    try:
        return os.pwrite(handle, aligned(PAGE), 0) == PAGE
    except OSError:
        return False
    finally:
        os.close(handle)


def drop(np: Any, path: Path) -> bool:
    """Write a file out and drop its pages from this node's page cache; tell whether none is left (0.1 % at most)."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
        length = os.fstat(handle).st_size
        # Pages that another rank or the kernel holds at this moment stay: it is asked again.
        for _ in range(5):
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            if _resident(np, handle, length) <= 0.001:
                return True
            time.sleep(0.01)
        return False
    finally:
        os.close(handle)


def _resident(np: Any, handle: int, length: int) -> float:
    """Return the share of an open file's pages in the page cache; 1 where the system does not tell."""
    with mmap.mmap(handle, length, prot=mmap.PROT_READ) as mapped:
        pages = np.frombuffer(mapped, np.uint8)
        found = np.empty(-(-length // mmap.PAGESIZE), np.uint8)
        call = ctypes.CDLL(None, use_errno=True).mincore
        done = call(ctypes.c_void_p(pages.ctypes.data), ctypes.c_size_t(length), ctypes.c_void_p(found.ctypes.data))
        del pages  # else the mapping cannot be closed
    return float((found & 1).mean()) if done == 0 else 1.0


class Record:
    """Bytes of one rank's records: random ones that differ by rank, with a stamp in front, of large ones in front of each page.

    The stamp tells rank, page and which writing it was, so that a record which is lost, old or misplaced is seen, and no
    file system keeps equal pages once.
    """

    def __init__(self, np: Any, size: int, owner: int) -> None:
        self.bytes = aligned(-(-size // PAGE) * PAGE)[:size]
        self.words = np.frombuffer(self.bytes, np.uint64)
        self.words[:] = np.random.default_rng(owner).integers(0, 2**64, size // _WORD, np.uint64)
        self._np, self._owner = np, owner
        self._pages = self.words[:: PAGE // _WORD]
        self._ids = np.arange(len(self._pages), dtype=np.uint64)
        # One word is written quicker without numpy, which would take a tenth of the time of a small record.
        self.head, self._large = self.bytes.cast("Q"), size >= _LARGE

    def stamps(self, places: list[int], writing: int) -> list[int]:
        """Return the first word of the record at each of these places, counted in pages."""
        base = (writing % 4096 << 52) + (self._owner % (1 << 20) << 32)
        return [base + place for place in places]

    def stamp(self, first: int) -> None:
        """Mark the record as the one that begins with `first`."""
        if self._large:
            self._np.add(self._ids, self._np.uint64(first), out=self._pages)
        else:
            self.head[0] = first
