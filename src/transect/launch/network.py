"""Which network interface libraries use, and ports that are free."""

from __future__ import annotations

import os
import socket
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from transect.domain.errors import BadInput, MissingDependency

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

    Raises OSError when there are none between 20000 and 29999, and BadInput for more than lie there.
    """
    if count >= len(PORTS):
        raise BadInput(f"{count} ranks on one host: expected fewer than {len(PORTS)}, as each has a port of its own")
    begin = derived_port(seed) - PORTS.start
    room = len(PORTS) - count
    for step in range(0, room, max(count, 1)):
        first = PORTS.start + (begin + step) % room
        if _all_free(first, count):
            return first
    raise OSError(f"no {count} free ports in a row between {PORTS.start} and {PORTS.stop - 1}")


def addresses_of(names: Sequence[str], answers: Callable[[], str] | None) -> tuple[str, ...]:
    """Return the IPv4 address of each host: as this one resolves it, or as it `answers` itself.

    `answers` gives a line `host address` for each, or `rank address` where each has a rank: only a host knows
    the address of one of its interfaces, and hosts may go by other names than their own.
    Raises MissingDependency for an unknown host, BadInput for an address that no other can reach.
    """
    if len(names) == 1:
        return ("127.0.0.1",)
    if answers is not None:
        known = dict(line.split() for line in answers().splitlines() if len(line.split()) == 2)
        listed = [known.get(str(n)) or known.get(name) or known.get(name.split(".")[0]) for n, name in enumerate(names)]
        if None in listed:
            raise MissingDependency(f"node {names[listed.index(None)]} did not report the address of its interface")
        return tuple(filter(None, listed))
    found = []
    for name in names:
        try:
            found.append(socket.gethostbyname(name))
        except OSError as error:
            raise MissingDependency(f"the address of node {name}: {error}") from None
        if found[-1].startswith("127."):
            raise BadInput(f"node {name} goes by {found[-1]} here, which no other node can reach: name an interface")
    return tuple(found)
