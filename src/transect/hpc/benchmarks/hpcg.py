"""HPCG, High-Performance Conjugate Gradients, where a system has it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.domain.files import write_atomic
from transect.hpc.benchmarks._options import OptionError, fraction, whole
from transect.hpc.benchmarks._sizes import cells_memory
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

# As in the hpcg.dat that comes with HPCG 3.1; a result to be submitted takes 1800 s.
_SECONDS = 60
# Its rule: the problem takes a quarter of the memory, of which a point of the grid takes 27 values and columns of a row,
# vectors, and the coarser grids: 0.8 GB for 104 points a side.
_SHARE, _POINT_BYTES = 0.25, 750


def input_file(nx: int, ny: int, nz: int, seconds: int) -> str:
    """Return `hpcg.dat`: two free lines, the grid of each rank, the seconds to run for."""
    return f"HPCG benchmark input file\nwritten by transect\n{nx} {ny} {nz}\n{seconds}\n"


def side_for(memory: int) -> int:
    """Return the points along each side of a rank's grid, a multiple of 8 from 16 on, that take `memory` bytes."""
    return max(16, int((memory / _POINT_BYTES) ** (1 / 3)) // 8 * 8)


def _problem(cell: BenchCell) -> tuple[int, int, int, int]:
    share = fraction(cell, "memory_fraction", _SHARE)
    side = side_for(int(cells_memory(cell) * share) // cell.ranks_per_node)
    nx, ny, nz = sides = tuple(whole(cell, name, side, 16) for name in ("nx", "ny", "nz"))
    for name, side in zip(("nx", "ny", "nz"), sides, strict=True):
        # Three coarser grids, each half as long.
        if side % 8:
            raise OptionError(f"option {name}: expected a multiple of 8 from 16 on, found {side}")
    if 8 * min(sides) < max(sides):
        raise OptionError(
            f"options nx, ny, nz: HPCG takes no side more than 8 times as long as another, found {nx} {ny} {nz}"
        )
    return nx, ny, nz, whole(cell, "seconds", _SECONDS)


@BENCHMARKS.register("hpcg")
class Hpcg(Benchmark):
    """High-Performance Conjugate Gradients; the grid of each rank stays when ranks are added."""

    name = "hpcg"
    prefix_starts_ranks = True
    many_ranks = True
    program = "xhpcg"
    options: ClassVar[dict[str, str]] = {
        "memory_fraction": "share of a node's memory that all its grids take, where their sides are not given and the cell uses "
        f"all cores, of fewer cores less; default {_SHARE}",
        "nx": "points of each rank's grid along x, a multiple of 8; default: from memory_fraction",
        "ny": "along y; default as nx",
        "nz": "along z; default as nx",
        "seconds": f"how long it runs, besides its set-up and its reference runs; default {_SECONDS}",
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"nx": 16, "ny": 16, "nz": 16, "seconds": 1}
    install = "spack install hpcg"

    def flags(self, cell: BenchCell) -> list[str]:
        """Return none, of a grid that HPCG takes: without arguments it reads its file."""
        _problem(cell)
        return []

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Write `hpcg.dat` and return argv: without arguments xhpcg reads that file."""
        write_atomic(folder / "hpcg.dat", input_file(*_problem(cell)))
        return [*mpiexec, program]

    def logs(self, folder: Path) -> list[Path]:
        """Return the report that it writes, or what it printed when it wrote none.

        3.x: `HPCG-Benchmark_3.1_DATE.txt` beside `hpcgDATE.txt`, which holds residuals only; the
        first versions called their report `hpcg_log_DATE.txt`.
        """
        for pattern in ("HPCG-Benchmark*", "hpcg*.txt"):
            files = sorted(folder.glob(pattern))
            if files:
                return files
        return [folder / "output.log"]
