"""The federate stage: one process, or ranks that share the clients' turns."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage_helpers import OneProcess, ranks
from transect.launch import Request


class FederateRunner(OneProcess):
    """Starts the payload on every rank; rank 0 leaves `result.json`."""

    def prepare(self, job: Job) -> tuple[str, Request]:
        """All ranks through the system's MPI launcher."""
        if job.cell.ranks == 1:
            return super().prepare(job)
        return ranks(job, self.command(job), "mpi")
