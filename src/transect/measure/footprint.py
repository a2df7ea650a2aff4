"""How much must be installed before something runs: files and bytes below folders.

What Python writes beside its sources when it first imports them (`__pycache__`) is left out: it grows with
use. A file of several names counts once; a link counts as a file without bytes, wherever it leads. So what an
environment borrows from the machine, its interpreter, is not in its own folder: `interpreter` has it.
"""

from __future__ import annotations

import csv
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISLNK

_WRITTEN_BY_USE = "__pycache__"
# Below the standard library, but no part of it.
_PACKAGES = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True, slots=True)
class Footprint:
    """`files` of `bytes` in all, as they are long: not the blocks that they take."""

    bytes: int = 0
    files: int = 0

    def __add__(self, other: Footprint) -> Footprint:
        return Footprint(self.bytes + other.bytes, self.files + other.files)


def footprint(paths: Iterable[Path], without: frozenset[str] = frozenset()) -> Footprint:
    """Measure files and folders; folders called as in `without` are left out. What is not there counts nothing."""
    total, seen = Footprint(), set()
    for path in paths:
        for facts in _files(path, without):
            if (facts.st_dev, facts.st_ino) not in seen:
                seen.add((facts.st_dev, facts.st_ino))
                total += Footprint(0 if S_ISLNK(facts.st_mode) else facts.st_size, 1)
    return total


def interpreter() -> Footprint:
    """Measure the interpreter that virtual environments of this one share: program, library, standard library."""
    standard = Path(sysconfig.get_path("stdlib"))
    library = Path(str(sysconfig.get_config_var("LIBDIR")), str(sysconfig.get_config_var("INSTSONAME")))
    # A name that leads to the program is not the program.
    return footprint([Path(sys.executable).resolve(), library.resolve(), standard], _PACKAGES)


def of_package(environment: Path, name: str) -> list[Path]:
    """Return the files of a Python package of an environment, as pip's record lists them; none without it."""
    found = []
    for record in environment.glob(f"lib/python*/site-packages/{name}-*.dist-info/RECORD"):
        with record.open(encoding="utf-8", newline="") as lines:
            found += [record.parents[1] / row[0] for row in csv.reader(lines) if row]
    return [path for path in found if _WRITTEN_BY_USE not in path.parts]


def _files(path: Path, without: frozenset[str]) -> Iterator[os.stat_result]:
    if path.is_dir() and not path.is_symlink():
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield entry.stat(follow_symlinks=False)
                elif entry.name != _WRITTEN_BY_USE and entry.name not in without:
                    yield from _files(Path(entry), without)
    else:
        with suppress(FileNotFoundError):
            yield path.lstat()
