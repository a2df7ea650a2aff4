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

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: it is ranks with one thread each, on the CPU, and one has no partner."""
        if cell.device != "cpu":
            return f"it sends from the memory of the CPU, not of '{cell.device}'"
        if cell.ranks < 2:
            return "one rank has nobody to talk to: ask for two or more"
        if cell.threads != 1:
            return f"it runs one thread per rank, not {cell.threads}"
        return None

    def command(self, cell: BenchCell, folder: Path, python: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list; writes nothing. `mpiexec` starts all ranks."""
        # mpi4py as the program ends every rank when one raises; else the others wait for ever.
        program = [python, "-m", "mpi4py", "-m", "transect.hpc.probes.network"]
        options = ["--nodes", str(cell.nodes), "--max-seconds", str(_SECONDS)]
        return [*mpiexec, *program, *options]

    def logs(self, folder: Path) -> list[Path]:
        """Return the kept standard output."""
        return [folder / "output.log"]

    def code_files(self) -> list[Path]:
        """Return the probe and this file."""
        return [Path(__file__), Path(common.__file__), Path(network.__file__)]
