"""The probe of matrix multiplication, as a benchmark."""

from __future__ import annotations

from pathlib import Path

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark
from transect.hpc.probes import common, matrix_multiply

_SECONDS = 5.0


@BENCHMARKS.register("matrix-multiply-probe")
class MatrixMultiplyProbe(Benchmark):
    """Runs `transect.hpc.probes.matrix_multiply`."""

    name = "matrix-multiply-probe"
    parser = "matrix-multiply-probe"
    environment = "base"

    def command(self, cell: BenchCell, folder: Path, python: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list; writes nothing."""
        module = "transect.hpc.probes.matrix_multiply"
        return [python, "-m", module, "--threads", str(cell.threads), "--seconds", str(_SECONDS)]

    def code_files(self) -> list[Path]:
        """Return the probe and this file."""
        return [Path(__file__), Path(common.__file__), Path(matrix_multiply.__file__)]
