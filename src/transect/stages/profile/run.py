"""The profile stage: what each layer takes, for the planner and for forecasts."""

from __future__ import annotations

from transect.domain.axes.train import ProfileCell, profiled_training
from transect.domain.errors import Unsupported
from transect.engine.job import Job, cell_of
from transect.engine.stage_helpers import OneProcess, ranks
from transect.launch import Request
from transect.training.support import reason_to_skip
from transect.training.workloads import Parameters


class ProfileRunner(OneProcess):
    """One process, or as many at the same time as are to share a node: rank 0 reports."""

    def prepare(self, job: Job) -> tuple[str, Request]:
        """Return what starts them. Raises Unsupported for what its framework cannot train."""
        cell = cell_of(job, ProfileCell)
        parameters = Parameters.model_validate(job.spec["parameters"])
        if (reason := reason_to_skip(profiled_training(cell), parameters)) is not None:
            raise Unsupported(reason)
        return super().prepare(job) if cell.ranks == 1 else ranks(job, self.command(job), "none")
