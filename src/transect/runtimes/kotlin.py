"""ONNX Runtime from Kotlin, on the Java virtual machine."""

from __future__ import annotations

from pathlib import Path

from transect.domain.axes.infer import InferCell
from transect.runtimes import RUNTIMES
from transect.runtimes._programs import library_file
from transect.runtimes.java import JavaRuntime


@RUNTIMES.register("kotlin", "kt")
class KotlinRuntime(JavaRuntime):
    """ONNX Runtime's Java API, called from Kotlin."""

    environment = "runner-kotlin"
    program = "transect-runner-kotlin"
    trains = False
    providers = ("cpu",)

    def supports(self, cell: InferCell) -> str | None:
        """As Java, one call after another."""
        if cell.stage != "infer" or cell.load is not None:
            return "the runner in Kotlin has the level latency only"
        return super().supports(cell)

    def files(self, python: str) -> list[Path]:
        """Return the program's jars, the binding, and the library."""
        return [Path(python).parents[1] / "lib" / "kotlin", library_file(python)]
