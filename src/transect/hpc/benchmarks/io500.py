"""IO500, the ranking of parallel file systems, where a system has it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.domain.files import write_atomic
from transect.hpc.benchmarks._files import place_of, target_folder
from transect.hpc.benchmarks._options import size_bytes, whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

# Less is no valid run by its own rules.
_STONEWALL = 300
# Its own: they are to last longer than the stonewall.
_BLOCK, _FILES, _SEGMENTS = "9920000m", 1_000_000, 10_000_000
_CONFIG = "io500.ini"


@BENCHMARKS.register("io500")
class Io500(Benchmark):
    """IO500 on all ranks of the cell; with a `stonewall` below 300 it calls its own result invalid, and so does the cell."""

    name = "io500"
    prefix_starts_ranks = True
    many_ranks = True
    threads = False
    program = "io500"
    install = "spack install io500"
    options: ClassVar[dict[str, str]] = {
        "stonewall": f"seconds that each phase writes at least; default {_STONEWALL}: less is an invalid run by its rules",
        "block": f"most that each rank writes in the easy phase, a multiple of 2m; default {_BLOCK}",
        "files": f"most files of each rank in the easy phase; default {_FILES}",
        "segments": f"most records of each rank in the hard phase; default {_SEGMENTS}",
        "folder": "absolute path of the folder to write in; default: the cell's own",
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"stonewall": 1, "block": "64m", "files": 200, "segments": 200}

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its input file, of options that are ones."""
        _config(cell, "")
        return [_CONFIG]

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Write the input file; IO500 removes its files itself, unless it is ended before."""
        place = f"{target_folder(cell) or folder}/{place_of(cell)}"
        write_atomic(folder / _CONFIG, _config(cell, place))
        return [*mpiexec, program, *self.flags(cell)]


def _config(cell: BenchCell, place: str) -> str:
    block, _ = size_bytes(cell, "block", _BLOCK)
    target_folder(cell)
    return f"""[global]
datadir = {place}
timestamp-datadir = FALSE
resultdir = results
[debug]
stonewall-time = {whole(cell, "stonewall", _STONEWALL)}
[ior-easy]
blockSize = {block}
[mdtest-easy]
n = {whole(cell, "files", _FILES)}
[ior-hard]
segmentCount = {whole(cell, "segments", _SEGMENTS)}
"""
