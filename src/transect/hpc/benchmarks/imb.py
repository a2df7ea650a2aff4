"""The Intel MPI Benchmarks, MPI-1: of Intel's wheel, under Intel's MPI or MPICH, or of the system."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.domain.mpi_libraries import MPI_LIBRARIES, chosen_mpi
from transect.hpc.benchmarks._options import OptionError, one_of, whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

_PROGRAM = "IMB-MPI1"
# Whose MPI runs it; the wheels of the first two bring the program too. None: the system's, with its program.
_ENVIRONMENTS = {**{name: MPI_LIBRARIES[name].environment for name in ("intel", "mpich")}, "system": None}
_PAIRS = ("PingPong", "PingPongSpecificSource", "PingPing", "PingPingSpecificSource")
_TESTS = (
    *_PAIRS,
    *("Sendrecv", "Exchange", "Allreduce", "Reduce", "Reduce_local", "Reduce_scatter", "Reduce_scatter_block"),
    *("Allgather", "Allgatherv", "Scatter", "Scatterv", "Gather", "Gatherv", "Alltoall", "Alltoallv", "Bcast"),
    "Barrier",
)
_TEST, _LARGEST, _SECONDS = "Allreduce", 1 << 22, 10


def _mpi(cell: BenchCell) -> str:
    return one_of(cell, "mpi", "intel", tuple(_ENVIRONMENTS))


@BENCHMARKS.register("imb")
class Imb(Benchmark):
    """One test of the Intel MPI Benchmarks, MPI-1, over message sizes, on all ranks of the cell."""

    name = "imb"
    environment = "imb"
    prefix_starts_ranks = True
    many_ranks = True
    least_ranks = 2
    threads = False
    options: ClassVar[dict[str, str]] = {
        "mpi": "intel or mpich, each with the program out of Intel's wheel; system: the program and the MPI of PATH, "
        "modules or an image; default intel",
        "test": f"one of {', '.join(_TESTS)}; default {_TEST}",
        "max_bytes": f"largest message, a power of 2; default {_LARGEST}",
        "iterations": "most for each size; default 0: the program's own",
        "seconds": f"most for each size; default {_SECONDS}",
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"max_bytes": 65536, "iterations": 100, "seconds": 1}
    install = "spack install intel-mpi-benchmarks"

    def programs(self, cell: BenchCell) -> tuple[str, ...]:
        """Return the program's name where it is the system's; else it is looked for in the environment."""
        return (_PROGRAM,) if cell.option("mpi", "") == "system" else ()

    def environment_of(self, cell: BenchCell) -> str | None:
        """Return that of the MPI."""
        return _ENVIRONMENTS.get(str(cell.option("mpi", "intel")), self.environment)

    def by_launcher(self, cell: BenchCell) -> bool:
        """On one node an environment's own mpiexec starts them: srun may know another interface than its MPI."""
        return cell.nodes > 1 or cell.option("mpi", "") == "system"

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its options."""
        _mpi(cell)
        test = one_of(cell, "test", _TEST, _TESTS)
        largest = whole(cell, "max_bytes", _LARGEST)
        if largest & (largest - 1):
            raise OptionError(f"option max_bytes: expected a power of 2, found {largest}")
        # On all ranks at once, not on 2, 4, 8 ... of them first.
        flags = [test, "-npmin", str(cell.ranks), "-msglog", f"0:{largest.bit_length() - 1}"]
        if iterations := whole(cell, "iterations", 0, 0):
            flags += ["-iter", str(iterations)]
        return [*flags, "-time", str(whole(cell, "seconds", _SECONDS))]

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: also more ranks than the two of a pair."""
        if chosen_mpi(cell.options) == "openmpi":
            ours, other = (MPI_LIBRARIES[name].abi for name in ("intel", "openmpi"))
            return f"{_PROGRAM} of Intel's wheel is linked by the ABI of MPICH and Intel MPI ({ours}), and Open MPI has {other}"
        if (reason := super().supports(cell)) is not None:
            return reason
        test = str(cell.option("test", _TEST))
        if test in _PAIRS and cell.ranks != 2:
            return f"{test} is between two ranks; {cell.ranks} were asked for"
        return None

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list; an environment's MPI is found by the variables that the wheels need."""
        if _mpi(cell) == "system":
            return [*mpiexec, program, *self.flags(cell)]
        place = Path(program).parent.parent
        found = [f"LD_LIBRARY_PATH={place}/lib", f"I_MPI_ROOT={place}", f"FI_PROVIDER_PATH={place}/lib"]
        if cell.option("mpi", "") == "mpich":
            found = found[:1]
        # The host by its name: in a scheduler's job Hydra would take those of the job.
        start = [] if self.by_launcher(cell) else [*mpiexec, "-hosts", "localhost", "-n", str(cell.ranks)]
        return [*start, "env", *found, str(place / "bin" / _PROGRAM), *self.flags(cell)]
