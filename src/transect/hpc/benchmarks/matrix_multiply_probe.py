"""The probe of matrix multiplication, as a benchmark."""

from __future__ import annotations

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._probes import Probe
from transect.hpc.benchmarks.base import BENCHMARKS


@BENCHMARKS.register("matrix-multiply-probe")
class MatrixMultiplyProbe(Probe):
    """Runs `transect.hpc.probes.matrix_multiply`."""

    name = "matrix-multiply-probe"
    environment = "base"
    python = ("-m", "transect.hpc.probes.matrix_multiply")

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its threads and its time."""
        return ["--threads", str(cell.threads), "--seconds", "5.0"]
