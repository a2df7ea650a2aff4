"""HPC Challenge, where a system has it installed (Debian: `apt install hpcc`)."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.domain.files import write_atomic
from transect.hpc.benchmarks._linpack import linpack_input, near_square
from transect.hpc.benchmarks._options import whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

_N, _NB = 2500, 80
_LAUNCHERS = ("mpiexec", "mpirun", "mpiexec.openmpi", "mpirun.openmpi")

# What HPCC reads behind HPL's lines.
_PTRANS = """\
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200 10000   values of N
0            number of additional blocking sizes for PTRANS
40 9 8       values of NB
"""


def input_file(ranks: int, n: int = _N, nb: int = _NB) -> str:
    """Return `hpccinf.txt` for P x Q = `ranks` processes, as square as it goes, P <= Q."""
    p, q = near_square(ranks)
    # Device 8: into hpccoutf.txt, with everything else.
    return linpack_input(n=n, nb=nb, p=p, q=q, device=8) + _PTRANS


def _size(cell: BenchCell) -> tuple[int, int]:
    return whole(cell, "N", _N), whole(cell, "NB", _NB)


@BENCHMARKS.register("hpcc")
class Hpcc(Benchmark):
    """HPC Challenge with a small problem: seconds on a laptop."""

    name = "hpcc"
    program = "hpcc"
    many_ranks = True
    threads = False
    options: ClassVar[dict[str, str]] = {
        "N": f"order of HPL's matrix, from which the other sizes follow; default {_N}",
        "NB": f"block size of HPL; default {_NB}",
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"N": 500, "NB": 40}
    install = "apt-get install hpcc"

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: also other nodes."""
        if cell.nodes != 1:
            # Its mpiexec would be told nothing of them and put all ranks on one.
            return f"hpcc is started by its own mpiexec, on one node, not on {cell.nodes}"
        return super().supports(cell)

    def flags(self, cell: BenchCell) -> list[str]:
        """Return none, of a problem that is one: it reads its file."""
        _size(cell)
        return []

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Write `hpccinf.txt`, remove an old output (the program appends to it), return argv."""
        n, nb = _size(cell)
        write_atomic(folder / "hpccinf.txt", input_file(cell.ranks, n, nb))
        (folder / "hpccoutf.txt").unlink(missing_ok=True)
        if cell.ranks == 1:
            return [program]
        return [*_launcher(program, mpiexec), "-n", str(cell.ranks), program]

    def logs(self, folder: Path) -> list[Path]:
        """Return `hpccoutf.txt`, or the program's output where it never wrote that."""
        out = folder / "hpccoutf.txt"
        return [out if out.exists() else folder / "output.log"]


def _launcher(program: str, mpiexec: list[str]) -> list[str]:
    """Prefer the launcher installed beside the program.

    Started by another MPI's mpiexec, every rank would be a world of its own.
    """
    if mpiexec and Path(mpiexec[0]).name in _LAUNCHERS:
        name = Path(mpiexec[0]).name
        if not Path(program).is_absolute():
            return [name, *mpiexec[1:]]  # what brings the program brings its MPI
        beside = Path(program).parent / name
        if beside.exists():
            return [str(beside), *mpiexec[1:]]
    return mpiexec
