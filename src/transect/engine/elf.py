"""The libraries that an ELF file asks for, of a program or a library for this machine.

System V ABI, chapters 4 and 5 (object files, program loading and dynamic linking), and elf(5). Read here and not asked
from `ldd`, which runs the loader of the host: an image may have another one.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_NEEDED, _STRINGS = 1, 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Elf:
    """`needed` are names such as libssl.so.3; `loader` is its path."""

    needed: tuple[str, ...] = ()
    loader: str = ""


@cache
def _here() -> bytes:
    """Return how the head of each ELF file for this machine begins: 64 bit, byte order and machine are in it."""
    with Path(sys.executable).open("rb") as stream:
        return stream.read(20)


def read_elf(path: Path) -> Elf | None:
    """Return the facts of a program or a shared library for this machine; None for any other file, or a cut one.

    Raises OSError when the file cannot be read.
    """
    with path.open("rb") as stream:
        head, here = stream.read(64), _here()
        if len(head) < 64 or head[:6] != here[:6] or head[18:20] != here[18:20] or head[16] not in (2, 3):
            return None
        try:
            return _linked(stream, head)
        except (struct.error, ValueError, StopIteration):
            return None


def _linked(stream: BinaryIO, head: bytes) -> Elf:
    (table,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    stream.seek(table)
    headers = stream.read(size * count)
    loads: list[tuple[int, int, int]] = []
    dynamic, loader = b"", ""
    for index in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", headers, index * size)
        if kind == _LOAD:
            loads.append((address, offset, length))
        elif kind in (_DYNAMIC, _INTERPRETER):
            stream.seek(offset)
            found = stream.read(length)
            if kind == _DYNAMIC:
                dynamic = found
            else:
                loader = found.split(b"\0")[0].decode()
    entries = list(struct.iter_unpack("<QQ", dynamic[: len(dynamic) // 16 * 16]))
    strings = next((value for tag, value in entries if tag == _STRINGS), 0)
    names = []
    for place in (strings + value for tag, value in entries if tag == _NEEDED):
        stream.seek(next(offset + place - address for address, offset, n in loads if address <= place < address + n))
        names.append(stream.read(512).split(b"\0")[0].decode())
    return Elf(needed=tuple(names), loader=loader)
