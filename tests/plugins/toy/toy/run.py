"""The toy stage: a norm of trained weights."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums, need


@RUNNERS.register("toy")
class Toy(OneProcess):
    """Runs `transect.stages.toy.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the base environment."""
        weights = need(job, "weights") / "weights.npz"
        arguments = ("--spec", job.spec_file, "--weights", weights, "--out", job.folder)
        return job.module("transect.stages.toy.worker", *arguments)

    def inputs(self, job: Job) -> list[str]:
        """The weights."""
        return checksums(job.input("weights") / "weights.npz")
