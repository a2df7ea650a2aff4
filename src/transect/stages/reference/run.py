"""The reference stage: the float64 trajectory and its tolerances."""

from __future__ import annotations

from transect.execution.job import Job
from transect.execution.stage import RUNNERS
from transect.execution.stage_helpers import OneProcess, data_checksums, need

__all__ = ["Reference"]


@RUNNERS.register("reference")
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
