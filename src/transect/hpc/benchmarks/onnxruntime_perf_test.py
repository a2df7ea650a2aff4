"""onnxruntime_perf_test, ONNX Runtime's own benchmark of one model, where a system has it.

It is no runtime of stage `infer`: it writes no outputs, so whether they are right cannot be seen.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._options import complaint, program_name, text, whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

_NAME = "onnxruntime_perf_test"
_RUNS = 1000
_DIMENSIONS = r"[\w.]+:[1-9]\d*( [\w.]+:[1-9]\d*)*"


def _model(cell: BenchCell) -> str:
    return text(cell, "model", "", r"/.+\.onnx", "the absolute path of an ONNX file")


@BENCHMARKS.register("onnxruntime-perf-test")
class OnnxruntimePerfTest(Benchmark):
    """onnxruntime_perf_test on one ONNX model, in one process."""

    name = "onnxruntime-perf-test"
    program = _NAME
    devices = ("cpu", "cuda")
    options: ClassVar[dict[str, str]] = {
        "model": "absolute path of the ONNX file; default: none, it must be given",
        "runs": f"calls after the first one; default {_RUNS}",
        "dimensions": "sizes of the model's free dimensions by name, such as batch:16; default: 1 each",
        "program": f"its name or path, where it goes by another; default: {_NAME}",
    }

    def programs(self, cell: BenchCell) -> tuple[str, ...]:
        """Return its name."""
        return (program_name(cell, _NAME),)

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: it needs a model, too."""
        return super().supports(cell) or complaint(_model, cell)

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its options."""
        program_name(cell, _NAME)
        flags = ["-m", "times", "-r", str(whole(cell, "runs", _RUNS))]
        # Sequential, and all optimisations: as the set `equal` of stage `infer`.
        flags += ["-x", str(cell.threads), "-y", "1", "-o", "99", "-e", cell.device]
        # Inputs of its own making, from a seed: memory that nobody wrote may be full of denormals.
        flags += ["-I", "-S", "1", "-s"]
        if cell.option("dimensions", ""):
            flags += ["-f", text(cell, "dimensions", "", _DIMENSIONS, "e.g. batch:16, or a:1 b:2")]
        return [*flags, str(cell.option("model", ""))]

    def files(self, cell: BenchCell) -> list[Path]:
        """Return the model."""
        given = str(cell.option("model", ""))
        return [Path(given)] if given else []
