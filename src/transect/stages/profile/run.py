"""The profile stage: what each layer takes, for the planner and for forecasts."""

from __future__ import annotations

from transect.domain.axes.train import ProfileCell, profiled_training
from transect.domain.errors import Unsupported
from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, ranks
from transect.launch import Request
from transect.training.support import reason_to_skip
from transect.training.workloads import Parameters


@RUNNERS.register("profile")
class Profile(OneProcess):
    """Runs `transect.stages.profile.worker`."""

    measures = True

    def prepare(self, job: Job) -> tuple[str, Request]:
        """One process, or as many side by side as are to share a node: rank 0 tells."""
        if job.cell.ranks == 1:
            return super().prepare(job)
        return ranks(job, self.command(job), "none")

    def command(self, job: Job) -> list[str]:
        """One process in the framework's environment."""
        assert isinstance(job.cell, ProfileCell)
        parameters = Parameters.model_validate(job.spec["parameters"])
        if (reason := reason_to_skip(profiled_training(job.cell), parameters)) is not None:
            raise Unsupported(reason)
        return job.module("transect.stages.profile.worker", "--spec", job.spec_file, "--out", job.folder)
