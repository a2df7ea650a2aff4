"""Open MPI's or MPICH's mpiexec: from the environment's wheel, else from PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from transect.launch import LAUNCHERS, Request
from transect.launch.network import free_port
from transect.launch.rendezvous import World
from transect.launch.shim import common_variables, rank_command, rendezvous_of

__all__ = ["Mpiexec", "find_mpiexec", "mpiexec_prefix", "on_this_node"]


def find_mpiexec(folder: Path | None) -> str | None:
    """Return the mpiexec beside the environment's python, or the one on PATH.

    The environment's own comes first: mpi4py there loads that MPI.
    """
    if folder is not None and (folder / "mpiexec").exists():
        return str(folder / "mpiexec")
    return shutil.which("mpiexec")


@cache
def _is_open_mpi(program: str) -> bool:
    text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return "Open MPI" in text or "OpenRTE" in text or "PRRTE" in text


# Inside a Slurm job every mpiexec starts its ranks on the job's nodes, as many as the job has tasks.
# Ranks of this launcher run here. Open MPI 5, Open MPI 4 and MPICH, in this order.
_HERE = {
    "PRTE_MCA_ras": "^slurm", "PRTE_MCA_plm": "^slurm",
    "OMPI_MCA_ras": "^slurm", "OMPI_MCA_plm": "^slurm",
    "HYDRA_RMK": "user", "HYDRA_LAUNCHER": "fork",
}  # fmt: skip


def on_this_node() -> dict[str, str]:
    """Return the variables with which mpiexec starts its ranks here, in a Slurm job too."""
    return dict(_HERE) if "SLURM_JOB_ID" in os.environ else {}


def mpiexec_prefix(program: str) -> list[str]:
    """Return the program with the flag that Open MPI wants from root."""
    root = os.geteuid() == 0 and _is_open_mpi(program)
    return [program, "--allow-run-as-root"] if root else [program]


@LAUNCHERS.register("mpiexec")
class Mpiexec:
    """One mpiexec process; it starts and ends the ranks."""

    def supports(self, request: Request) -> str | None:
        """Needs an mpiexec."""
        if find_mpiexec(request.bin) is None:
            return "no mpiexec in the environment or on PATH"
        if request.nodes != 1:
            return "mpiexec without a scheduler runs on one node; use a Slurm system"
        return None

    def processes(self, request: Request) -> list[tuple[list[str], dict[str, str]]]:
        """Return the one mpiexec command."""
        program = find_mpiexec(request.bin)
        assert program is not None
        kind = rendezvous_of(request)
        world = World(
            hosts=("127.0.0.1",),
            addresses=("127.0.0.1",),
            ranks_per_node=request.ranks,
            threads=request.threads,
            port=free_port(request.ranks),
            interface=request.interface,
        )
        command = [*mpiexec_prefix(program), "-n", str(request.ranks)]
        variables = on_this_node() | common_variables(request, kind, world)
        bound = False
        if _is_open_mpi(program):
            wish = (os.environ | request.variables).get("TRANSECT_BIND")
            # What mpiexec binds by is inherited by ranks that these spawn, for which no cores are
            # left then: MPI_Comm_spawn would fail. rank.py binds these ranks alone.
            bound = wish != "none" and not request.over_subscribed and not request.bind
            if request.over_subscribed:
                # Ranks that share a core must not spin while they wait for each other.
                variables = {"OMPI_MCA_mpi_yield_when_idle": "1"} | variables
                command += ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
            elif bound:
                command += ["--bind-to", "core", "--map-by", f"slot:PE={request.threads}"]
            else:
                command += ["--bind-to", "none"]
        ranks = rank_command(
            request, kind, world, told_by="mpi", bind="never" if bound else "always"
        )
        return [([*command, *ranks], variables)]
