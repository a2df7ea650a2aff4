"""The probe of messages between ranks, as a benchmark."""

from __future__ import annotations

from pathlib import Path

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark
from transect.hpc.probes import common, network

_SECONDS = 8.0


@BENCHMARKS.register("network-probe")
class NetworkProbe(Benchmark):
    """Runs `transect.hpc.probes.network` on all ranks of the cell."""

    name = "network-probe"
    parser = "network-probe"
    environment = "base"
    prefix_starts_ranks = True
    many_ranks = True
    least_ranks = 2
    threads = False

    def command(self, cell: BenchCell, folder: Path, python: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list; writes nothing. `mpiexec` starts all ranks."""
        # mpi4py as the program ends every rank when one raises; else the others wait for ever.
        program = [python, "-m", "mpi4py", "-m", "transect.hpc.probes.network"]
        options = ["--nodes", str(cell.nodes), "--max-seconds", str(_SECONDS)]
        return [*mpiexec, *program, *options]

    def code_files(self) -> list[Path]:
        """Return the probe and this file."""
        return [Path(__file__), Path(common.__file__), Path(network.__file__)]
