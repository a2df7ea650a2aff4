"""ONNX Runtime from Node.js."""

from __future__ import annotations

from pathlib import Path

from transect.runtimes import RUNTIMES
from transect.runtimes._programs import CompiledRuntime, library_file


def node_files(python: str, *packages: str) -> list[Path]:
    """Return what a runner in JavaScript runs: its own files and those packages of npm."""
    runners = Path(python).parents[1] / "runners"
    return [runners / "javascript", *(runners / "node_modules" / name for name in packages)]


@RUNTIMES.register("javascript", "js", "node", "node.js", "nodejs")
class JavaScriptRuntime(CompiledRuntime):
    """The package onnxruntime-node; inputs are bound over, outputs are copied inside of `run`."""

    environment = "runner-javascript"
    program = "transect-runner-javascript"
    trains = True

    def files(self, python: str) -> list[Path]:
        """Return the binding without the library that it brings, and the one that it takes."""
        package = "onnxruntime-node"
        binding = Path(python).parents[1] / "runners" / "node_modules" / package / "bin"
        parts = node_files(python, "onnxruntime-common/dist/cjs", f"{package}/dist")
        return [*parts, *binding.rglob("*.node"), library_file(python)]
