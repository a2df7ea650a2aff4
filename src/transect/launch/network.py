"""Which network interface libraries use, and ports that are free."""

from __future__ import annotations

import os
import socket
import zlib
from contextlib import ExitStack

__all__ = ["PORTS", "derived_port", "free_port", "interface_variables"]

# Below the range that Linux gives to outgoing connections (32768 and up), above well-known ones.
PORTS = range(20000, 30000)


def interface_variables(interface: str | None) -> dict[str, str]:
    """Return the variables that bind every communication library to one interface.

    InfiniBand verbs go by devices, not by interfaces: UCX_NET_DEVICES=mlx5_0:1 and NCCL_IB_HCA
    stand in a system's `networks.NAME.variables`.
    """
    if not interface:
        return {}
    return {
        # `=`: this name, not all that begin with it.
        "NCCL_SOCKET_IFNAME": f"={interface}",
        "GLOO_SOCKET_IFNAME": interface,
        "TP_SOCKET_IFNAME": interface,
        # Open MPI's TCP transport; then its daemons, by their names in versions 4 and 5.
        "OMPI_MCA_btl_tcp_if_include": interface,
        "OMPI_MCA_oob_tcp_if_include": interface,
        "PRTE_MCA_prte_if_include": interface,
        # libfabric's TCP provider, which MPICH and Intel MPI use, and MPICH's own.
        "FI_TCP_IFACE": interface,
        "MPIR_CVAR_CH3_NETWORK_IFACE": interface,
    }


def derived_port(seed: str) -> int:
    """Return a port that follows from a job's number: another host cannot be probed from here.

    The process id goes in too, so that a second step of the job does not take the same one.
    """
    number = zlib.crc32(f"{seed} {os.getpid()}".encode())
    return PORTS.start + number % (len(PORTS) - 1024)


def _all_free(first: int, count: int) -> bool:
    with ExitStack() as stack:
        for port in range(first, first + count):
            probe = stack.enter_context(socket.socket())
            # As a server would: a connection in TIME_WAIT does not make a port taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                return False
    return True


def free_port(count: int = 1, seed: str = "") -> int:
    """Return the first of `count` consecutive ports that are free on this host.

    Raises OSError when there are none between 20000 and 29999.
    """
    begin = derived_port(seed) - PORTS.start
    room = len(PORTS) - count
    for step in range(0, room, max(count, 1)):
        first = PORTS.start + (begin + step) % room
        if _all_free(first, count):
            return first
    raise OSError(f"no {count} free ports in a row between {PORTS.start} and {PORTS.stop - 1}")
