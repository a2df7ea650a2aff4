"""The reference stage: the float64 trajectory and its tolerances."""

from __future__ import annotations

from transect.execution.job import Job
from transect.execution.stages import STAGES
from transect.execution.stages._common import OneProcess, data_checksums, need

__all__ = ["Reference"]


@STAGES.register("reference")
class Reference(OneProcess):
    """Runs `transect.training.reference`."""

    def command(self, job: Job) -> list[str]:
        """One process in the base environment."""
        data = need(job, "data")
        arguments = ("--spec", job.spec_file, "--data", data, "--out", job.folder)
        return job.module("transect.training.reference", *arguments)

    def inputs(self, job: Job) -> list[str]:
        """The arrays of the data stage."""
        return data_checksums(job, job.cell.repeat)
