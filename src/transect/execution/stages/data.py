"""The data stage: split, normalise, initial weights, batch order."""

from __future__ import annotations

from transect.execution.job import Job
from transect.execution.stages import STAGES
from transect.execution.stages._common import OneProcess

__all__ = ["Data"]


@STAGES.register("data")
class Data(OneProcess):
    """Runs `transect.training.prepare`."""

    def command(self, job: Job) -> list[str]:
        """One process in the base environment."""
        return job.module("transect.training.prepare", "--spec", job.spec_file, "--out", job.folder)
