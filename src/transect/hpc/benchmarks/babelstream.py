"""BabelStream, the memory benchmark of the University of Bristol, where a system has it."""

from __future__ import annotations

from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.base import Run
from transect.hpc.benchmarks._devices import not_on_gpu
from transect.hpc.benchmarks._options import one_of, program_name, whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark
from transect.hpc.probes.common import last_level_cache
from transect.hpc.probes.memory_bandwidth import plan_array_bytes
from transect.measure.memory import node_memory

# A program for each programming model.
_NAMES = {"cpu": ("omp-stream", "babelstream"), "cuda": ("cuda-stream", "babelstream")}
_BYTES = {"double": 8, "float": 4}
_ITERATIONS = 100
# Programs for devices want a multiple of it.
_MULTIPLE = 1024
_ON_A_GPU = 1 << 30


@BENCHMARKS.register("babelstream")
class BabelStream(Benchmark):
    """BabelStream on the threads of one process, or on one GPU, whose name its log has to tell."""

    name = "babelstream"
    program = _NAMES["cpu"][0]
    devices = ("cpu", "cuda")
    options: ClassVar[dict[str, str]] = {
        "elements": f"of each of the three arrays, a multiple of {_MULTIPLE}; default: beyond the caches by four times where "
        "memory allows it, on a GPU 1 GiB",
        "precision": f"{' or '.join(_BYTES)}; default double",
        "iterations": f"runs of each kernel, of which the first does not count; default {_ITERATIONS}",
        "program": f"its name or path, where it goes by another; default: {' or '.join(_NAMES['cpu'])}, on a GPU cuda-stream",
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"elements": 1 << 20, "iterations": 10}
    install = "spack install babelstream +omp"

    def programs(self, cell: BenchCell) -> tuple[str, ...]:
        """Return the names that its builds give it."""
        return (program_name(cell, self.program),) if cell.option("program", "") else _NAMES[cell.device]

    def install_for(self, cell: BenchCell) -> str:
        """Return the command; the number of a GPU's architecture is 90 for an H100."""
        return "spack install babelstream +cuda cuda_arch=90" if cell.device == "cuda" else self.install

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its options: the launch layer sets OMP_NUM_THREADS."""
        program_name(cell, self.program)
        precision = one_of(cell, "precision", "double", tuple(_BYTES))
        size = _ON_A_GPU if cell.device == "cuda" else plan_array_bytes(last_level_cache(), node_memory())
        elements = whole(cell, "elements", size // _BYTES[precision] // _MULTIPLE * _MULTIPLE)
        flags = ["--arraysize", str(elements), "--numtimes", str(whole(cell, "iterations", _ITERATIONS, 2))]
        return [*flags, "--float"] if precision == "float" else flags

    def contradicts(self, cell: BenchCell, run: Run) -> str | None:
        """Return what says that it did not run on the GPU that was asked for."""
        return not_on_gpu(cell, run)
