"""The probe of memory bandwidth, as a benchmark."""

from __future__ import annotations

from pathlib import Path

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark
from transect.hpc.probes import common, memory_bandwidth

_SECONDS = 5.0


@BENCHMARKS.register("memory-bandwidth-probe")
class MemoryBandwidthProbe(Benchmark):
    """Runs `transect.hpc.probes.memory_bandwidth`."""

    name = "memory-bandwidth-probe"
    parser = "memory-bandwidth-probe"
    environment = "base"

    def command(self, cell: BenchCell, folder: Path, python: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list; writes nothing."""
        module = "transect.hpc.probes.memory_bandwidth"
        return [python, "-m", module, "--threads", str(cell.threads), "--seconds", str(_SECONDS)]

    def code_files(self) -> list[Path]:
        """Return the probe and this file."""
        return [Path(__file__), Path(common.__file__), Path(memory_bandwidth.__file__)]
