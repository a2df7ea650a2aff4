"""Plain processes on this machine."""

from __future__ import annotations

from transect.launch import LAUNCHERS, Launcher, Request
from transect.launch.network import free_port
from transect.launch.rank import Numbers, fill
from transect.launch.rendezvous import NUMBERS, RENDEZVOUS, World
from transect.launch.rendezvous.tcp import Tcp
from transect.launch.shim import common_variables, rank_command


@LAUNCHERS.register("plain")
class Plain(Launcher):
    """One process per rank, on one node."""

    def supports(self, request: Request) -> str | None:
        """One node only, and no MPI between ranks."""
        if request.nodes != 1:
            return f"plain processes run on one node, the cell asks for {request.nodes}"
        if request.ranks > 1 and RENDEZVOUS.get(request.rendezvous).mpi:
            return "plain processes do not form an MPI world: use mpiexec or srun"
        return None

    def processes(self, request: Request) -> list[tuple[list[str], dict[str, str]]]:
        """Return one entry per rank."""
        # Ranks that do not say how they meet may still meet as torch's do.
        kind = Tcp() if request.rendezvous == "none" else RENDEZVOUS.get(request.rendezvous)
        world = World(
            hosts=("127.0.0.1",),
            addresses=("127.0.0.1",),
            ranks_per_node=request.ranks,
            threads=request.threads,
            port=free_port(request.ranks),
            interface=request.interface,
        )
        command = rank_command(request, kind, world, numbered_by="given", bind="always")
        common = common_variables(request, kind, world)
        templates = NUMBERS | kind.per_rank(world)
        found = []
        for rank in range(request.ranks):
            numbers = Numbers(rank, request.ranks, rank, request.ranks, 0, 1, "127.0.0.1")
            of_rank = {name: fill(template, numbers) for name, template in templates.items()}
            found.append((command, common | of_rank))
        return found
