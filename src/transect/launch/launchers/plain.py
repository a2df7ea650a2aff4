"""Plain processes on this machine, with the rendezvous variables that torch reads."""

from __future__ import annotations

import socket

from transect.launch import LAUNCHERS, Request, thread_variables

__all__ = ["Plain"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@LAUNCHERS.register("plain")
class Plain:
    """One process per rank, on one node."""

    def supports(self, request: Request) -> str | None:
        """One node only."""
        if request.nodes != 1:
            return f"plain processes run on one node, the cell asks for {request.nodes}"
        return None

    def processes(self, request: Request) -> list[tuple[list[str], dict[str, str]]]:
        """Return one entry per rank."""
        variables = thread_variables(request.threads) | request.variables
        variables |= {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port()),
            "WORLD_SIZE": str(request.ranks),
        }
        return [
            (request.command, variables | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(request.ranks)
        ]
