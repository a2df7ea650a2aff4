"""HPC Challenge, where a system has it installed (Debian: `apt install hpcc`)."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

from transect.domain.cell import Cell
from transect.domain.files import write_atomic
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

__all__ = ["Hpcc", "input_file"]

_N, _NB = 2500, 80
_LAUNCHERS = ("mpiexec", "mpirun", "mpiexec.openmpi", "mpirun.openmpi")

# HPCC reads HPL's input file with a few lines added: lines count, not names.
_INPUT = """\
HPLinpack benchmark input file
written by transect
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n}          Ns
1            # of NBs
{nb}         NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{p}          Ps
{q}          Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200 10000   values of N
0            number of additional blocking sizes for PTRANS
40 9 8       values of NB
"""


def input_file(ranks: int, n: int = _N, nb: int = _NB) -> str:
    """Return `hpccinf.txt` for P x Q = `ranks` processes, as square as it goes, P <= Q."""
    p = next(p for p in range(math.isqrt(ranks), 0, -1) if ranks % p == 0)
    return _INPUT.format(n=n, nb=nb, p=p, q=ranks // p)


@BENCHMARKS.register("hpcc")
class Hpcc(Benchmark):
    """HPC Challenge with a small problem: seconds on a laptop."""

    name = "hpcc"
    parser = "hpcc"
    environment = None

    def supports(self, cell: Cell) -> str | None:
        """Return why not: the program is missing, or the cell asks for threads or a GPU."""
        if shutil.which("hpcc") is None:
            return "hpcc is not on PATH"
        if cell.device != "cpu":
            return f"hpcc runs on the CPU, not on '{cell.device}'"
        if cell.threads != 1:
            return f"hpcc runs one thread per rank; ask for {cell.threads} ranks instead"
        return None

    def command(self, cell: Cell, folder: Path, python: str, mpiexec: list[str]) -> list[str]:
        """Write `hpccinf.txt`, remove an old output (the program appends to it), return argv."""
        write_atomic(folder / "hpccinf.txt", input_file(cell.ranks))
        (folder / "hpccoutf.txt").unlink(missing_ok=True)
        program = shutil.which("hpcc") or "hpcc"
        if cell.ranks == 1:
            return [program]
        return [*_launcher(program, mpiexec), "-n", str(cell.ranks), program]

    def logs(self, folder: Path) -> list[Path]:
        """Return `hpccoutf.txt`, or what the program said when it did not get to write that."""
        out = folder / "hpccoutf.txt"
        return [out if out.exists() else folder / "output.log"]

    def code_files(self) -> list[Path]:
        """Return this file: it makes the input."""
        return [Path(__file__)]


def _launcher(program: str, mpiexec: list[str]) -> list[str]:
    """Prefer the launcher installed beside the program.

    Started by another MPI's mpiexec, every rank would be a world of its own.
    """
    if mpiexec and Path(mpiexec[0]).name in _LAUNCHERS:
        beside = Path(program).parent / Path(mpiexec[0]).name
        if beside.exists():
            return [str(beside), *mpiexec[1:]]
    return mpiexec
