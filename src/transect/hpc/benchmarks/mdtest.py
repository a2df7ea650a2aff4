"""mdtest, the benchmark of a file system's metadata, where a system has it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._files import FOLDER_MEANING, OfFiles, in_folder, target_folder
from transect.hpc.benchmarks._options import OptionError, whole
from transect.hpc.benchmarks.base import BENCHMARKS

_ITEMS, _DEPTH, _BRANCH = 1000, 0, 1
_ITERATIONS = 3


def directories(depth: int, branch: int) -> int:
    """Return how many directories a tree has, its root included."""
    return sum(branch**level for level in range(depth + 1))


@BENCHMARKS.register("mdtest")
class Mdtest(OfFiles):
    """mdtest: files and directories are created, looked at, read and removed, three times."""

    name = "mdtest"
    prefix_starts_ranks = True
    many_ranks = True
    threads = False
    program = "mdtest"
    options: ClassVar[dict[str, str]] = {
        "items": f"files, and as many directories, of each rank; default {_ITEMS}",
        "depth": f"levels of directories below the first; default {_DEPTH}",
        "branch": f"directories in each directory of these levels; default {_BRANCH}",
        "folder": FOLDER_MEANING,
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"items": 50}
    install = "spack install ior"

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its options."""
        items = whole(cell, "items", _ITEMS)
        depth, branch = whole(cell, "depth", _DEPTH, 0), whole(cell, "branch", _BRANCH)
        if depth > 20:
            raise OptionError(f"option depth: expected 0 to 20, found {depth}")
        if (count := directories(depth, branch)) > items:
            # mdtest would give each directory items / count of them: none.
            raise OptionError(f"option items: expected one or more for each of {count} directories, found {items}")
        flags = ["-n", str(items), "-i", str(_ITERATIONS), "-z", str(depth), "-b", str(branch)]
        if cell.nodes > 1:
            # Each rank stats and reads what a rank of the next node made: past the writer's cache.
            flags += ["-N", "1"]
        target_folder(cell)
        return flags

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list; mdtest makes its directory and empties it itself."""
        return [*mpiexec, *in_folder(cell, folder, [program, *self.flags(cell)], "-d")]
