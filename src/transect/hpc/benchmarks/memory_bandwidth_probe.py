"""The probe of memory bandwidth, as a benchmark."""

from __future__ import annotations

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._probes import Probe
from transect.hpc.benchmarks.base import BENCHMARKS


@BENCHMARKS.register("memory-bandwidth-probe")
class MemoryBandwidthProbe(Probe):
    """Runs `transect.hpc.probes.memory_bandwidth`."""

    name = "memory-bandwidth-probe"
    environment = "base"
    python = ("-m", "transect.hpc.probes.memory_bandwidth")

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its threads and its time."""
        return ["--threads", str(cell.threads), "--seconds", "5.0"]
