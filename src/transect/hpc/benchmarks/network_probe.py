"""The probe of messages between ranks, as a benchmark."""

from __future__ import annotations

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._probes import Probe
from transect.hpc.benchmarks.base import BENCHMARKS


@BENCHMARKS.register("network-probe")
class NetworkProbe(Probe):
    """Runs `transect.hpc.probes.network` on all ranks of the cell."""

    name = "network-probe"
    environment = "base"
    # mpi4py as the program ends every rank when one raises; else the others wait for ever.
    python = ("-m", "mpi4py", "-m", "transect.hpc.probes.network")
    prefix_starts_ranks = True
    many_ranks = True
    least_ranks = 2
    threads = False

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its nodes, its ranks and its time."""
        return ["--nodes", str(cell.nodes), "--ranks", str(cell.ranks), "--max-seconds", "8.0"]
