"""The step stage: a base model's training step as ONNX graphs, and its float64 paths."""

from __future__ import annotations

from pathlib import Path

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums, data_checksums, need


@RUNNERS.register("step")
class Step(OneProcess):
    """Runs `transect.stages.step.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in torch's environment."""
        arguments: list[str | Path] = ["--spec", job.spec_file, "--data", need(job, "data"), "--out", job.folder]
        if "weights" in job.spec["inputs"]:
            arguments += ["--weights", need(job, "weights") / "weights.npz"]
        return job.module("transect.stages.step.worker", *arguments)

    def inputs(self, job: Job) -> list[str]:
        """The arrays of the data stage, the starts of its problems' repeats, and weights."""
        repeats = sorted({problem["repeat"] for problem in job.spec["problems"]})
        taken = data_checksums(job, *repeats)
        if "weights" in job.spec["inputs"]:
            taken += checksums(job.input("weights") / "weights.npz")
        return taken
