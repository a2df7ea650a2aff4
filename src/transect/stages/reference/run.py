"""The reference stage: the float64 trajectory and its tolerances."""

from __future__ import annotations

from transect.domain.registry import load_plugin_folders
from transect.engine.job import Job, Result
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, data_checksums, need
from transect.launch.processes import Outcome


@RUNNERS.register("reference")
class Reference(OneProcess):
    """Runs `transect.stages.reference.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the base environment."""
        data = need(job, "data")
        arguments = ("--spec", job.spec_file, "--data", data, "--out", job.folder)
        return job.module("transect.stages.reference.worker", *arguments)

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Read the result; its score may be a metric that a plug-in has registered."""
        load_plugin_folders()
        return super().collect(job, outcome)

    def inputs(self, job: Job) -> list[str]:
        """The arrays of the data stage."""
        return data_checksums(job, job.cell.repeat)
