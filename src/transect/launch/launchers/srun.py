"""Slurm's srun, inside an allocation."""

from __future__ import annotations

import os

from transect.launch import LAUNCHERS, Request, thread_variables

__all__ = ["Srun"]


@LAUNCHERS.register("srun")
class Srun:
    """One job step; Slurm starts, binds and ends the ranks."""

    def supports(self, request: Request) -> str | None:
        """Needs a Slurm allocation."""
        return None if "SLURM_JOB_ID" in os.environ else "srun needs a Slurm allocation"

    def processes(self, request: Request) -> list[tuple[list[str], dict[str, str]]]:
        """Return the one srun command."""
        command = [
            "srun",
            f"--nodes={request.nodes}",
            f"--ntasks={request.ranks}",
            f"--ntasks-per-node={request.ranks_per_node}",
            f"--cpus-per-task={request.threads}",
            "--kill-on-bad-exit=1",
            "--mpi=pmix",
        ]
        return [
            ([*command, *request.command], thread_variables(request.threads) | request.variables)
        ]
