"""The infer stage: a runtime executes an exported model through the runner contract."""

from __future__ import annotations

import json
import sys

from transect.execution.job import Job
from transect.execution.stages import STAGES
from transect.execution.stages._common import OneProcess, checksums, need

__all__ = ["Infer"]


@STAGES.register("infer")
class Infer(OneProcess):
    """Runs `transect.runtimes.infer` here, which starts the runner in its environment."""

    measures = True
    in_environment = False

    def command(self, job: Job) -> list[str]:
        """One process of the driver that starts the runner."""
        arguments = (
            "--spec", job.spec_file, "--export", need(job, "export"),
            "--weights", need(job, "weights") / "weights.npz",
            "--out", job.folder, "--python", job.python, "--wrap", json.dumps(job.wrap()[0]),
        )  # fmt: skip
        return [sys.executable, "-m", "transect.runtimes.infer", *map(str, arguments)]

    def inputs(self, job: Job) -> list[str]:
        """The model, its inputs and its expected outputs."""
        names = ("model.onnx", "inputs.bin", "expected.bin")
        return checksums(
            *(job.input("export") / name for name in names), job.input("weights") / "weights.npz"
        )
