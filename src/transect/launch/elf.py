"""What an ELF file is made for, and the libraries that it asks for.

System V ABI, chapters 4 and 5 (object files, program loading and dynamic linking), and elf(5). Read here
and not asked from `ldd`, which runs the loader: what an image holds may be for another machine.
"""

from __future__ import annotations

import platform
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

# e_machine, by the names that `uname -m` has for them.
MACHINES = {
    3: "i686",
    20: "ppc",
    21: "ppc64le",
    22: "s390x",
    40: "armv7l",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_NEEDED, _STRINGS = 1, 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Elf:
    """`machine` as `uname -m` says it; `needed` are names such as libssl.so.3; `loader` is its path."""

    machine: str
    needed: tuple[str, ...] = ()
    loader: str = ""


def this_machine() -> str:
    """Return what `uname -m` says here."""
    return platform.machine()


def read_elf(path: Path) -> Elf | None:
    """Return the facts of a program or a shared library; None for any other file, or a cut one.

    Of 32-bit files and those of the other byte order only the machine. Raises OSError when the file
    cannot be read.
    """
    with path.open("rb") as stream:
        head = stream.read(64)
        if len(head) < 20 or head[:4] != b"\x7fELF":
            return None
        order = "<" if head[5] == 1 else ">"
        kind, number = struct.unpack_from(f"{order}HH", head, 16)
        machine = MACHINES.get(number, f"ELF machine {number}")
        if head[4] != 2 or order != "<" or len(head) < 64 or kind not in (2, 3):
            return Elf(machine=machine)
        try:
            return _linked(stream, head, machine)
        except (struct.error, ValueError):
            return None


def _linked(stream: BinaryIO, head: bytes, machine: str) -> Elf:
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
    strings = next((value for tag, value in entries if tag == _STRINGS), None)
    names = []
    for tag, value in entries:
        if tag == 0:
            break
        if tag == _NEEDED and strings is not None:
            place = strings + value
            start = next((o + place - a for a, o, n in loads if a <= place < a + n), None)
            if start is not None:
                stream.seek(start)
                names.append(stream.read(512).split(b"\0")[0].decode())
    return Elf(machine=machine, needed=tuple(names), loader=loader)
