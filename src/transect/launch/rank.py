"""What runs on every rank: `python rank.py OPTIONS -- COMMAND`.

It finds the rank's number, sets the variables that follow from it, binds it to cores and GPUs,
and becomes the command. With labels or services it stays as the command's parent.
A script of the standard library, Python 3.8 or later; it needs nothing else of transect.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# Each launcher's variables of (rank, world size, local rank); the first that is set counts.
_VARIABLES = {
    "mpi": (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
        ("PMIX_RANK", "", ""),
    ),
    "slurm": (("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),),
    "given": (("RANK", "WORLD_SIZE", "LOCAL_RANK"),),
}


class Numbers(NamedTuple):
    """Where a rank stands; the words that templates may hold in braces."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    node: int
    nodes: int
    host: str
    # Among the ranks that have the same local rank: one of each node that has so many.
    cross_rank: int = 0
    cross_size: int = 1


def find_numbers(environ: Mapping[str, str], numbered_by: str = "auto", ranks_per_node: Sequence[int] = ()) -> Numbers:
    """Read the rank's numbers from the launcher's variables.

    `ranks_per_node`: of each node, or one number that holds for all; nothing: one node has all.
    Raises ValueError when no launcher did, or when it placed the ranks in another order than
    node by node, by which addresses were given out.
    """
    kinds = ("mpi", "slurm", "given") if numbered_by == "auto" else (numbered_by,)
    names = [triple for kind in kinds for triple in _VARIABLES[kind] if environ.get(triple[0])]
    if not names:
        wanted = ", ".join(triple[0] for kind in kinds for triple in _VARIABLES[kind])
        raise ValueError(f"no launcher has set the rank: expected one of {wanted}")
    rank_name, size_name, local_name = names[0]
    rank = int(environ[rank_name])
    size = int(environ.get(size_name) or environ.get("WORLD_SIZE") or sum(ranks_per_node) or 1)
    counts = list(ranks_per_node) or [int(environ.get("LOCAL_WORLD_SIZE") or size)]
    if len(counts) == 1:
        counts *= -(-max(size, rank + 1) // counts[0])
    ends = [sum(counts[: node + 1]) for node in range(len(counts))]
    node = sum(end <= rank for end in ends)
    if ends[-1] < max(size, rank + 1):
        raise ValueError(f"{rank_name}={rank} of {size}, expected one of {ends[-1]} ranks")
    expected = rank - (ends[node] - counts[node])
    local_rank = int(environ.get(local_name) or expected)
    if local_rank != expected:
        raise ValueError(
            f"{rank_name}={rank} is {local_name}={local_rank}, expected {expected}: ranks "
            "must be placed node by node (is SLURM_DISTRIBUTION or a rank file set?)"
        )
    crossing = [count > local_rank for count in counts]
    cross = sum(crossing[:node]), sum(crossing)
    return Numbers(rank, size, local_rank, counts[node], node, len(counts), socket.gethostname(), *cross)


def fill(template: str, numbers: Numbers) -> str:
    """Replace {rank} and the other words of `Numbers`; other braces stay."""
    for name, value in zip(Numbers._fields, numbers):  # noqa: B905 Python 3.8
        template = template.replace("{" + name + "}", str(value))
    return template


def _devices(environ: Mapping[str, str], found: int) -> list[str]:
    given = environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name for name in given.split(",") if name and name != "NoDevFiles"]
    return [str(index) for index in range(found)]


def place(options: argparse.Namespace, numbers: Numbers, environ: dict[str, str]) -> None:
    """Bind this process to its cores and choose its GPUs, in `environ`.

    TRANSECT_BIND=none leaves the cores alone. Raises ValueError when there are too few GPUs.
    """
    import placement  # type: ignore[import-not-found]  # the file beside this one

    mask, blocks = os.sched_getaffinity(0), None
    bind = options.bind if environ.get("TRANSECT_BIND") != "none" else "never"
    if bind == "always" or (bind == "auto" and not placement.already_bound(mask, environ, placement.cgroup_cpus())):
        blocks = placement.core_blocks(mask, numbers.local_size, options.threads)
    if blocks:
        os.sched_setaffinity(0, blocks[numbers.local_rank])
    if not options.gpus_per_rank:
        return
    gpus = placement.gpu_nodes()
    devices = _devices(environ, len(gpus))
    # A launcher may have dealt them already, and says so by the variable; plain processes have none.
    named = options.numbered_by != "given" and "CUDA_VISIBLE_DEVICES" in environ
    if named and len(devices) == options.gpus_per_rank < options.gpus_per_rank * numbers.local_size:
        return
    numa = placement.numa_nodes()
    nodes = [numa.get(min(block)) for block in blocks] if blocks else [None] * numbers.local_size
    # Only plain numbers are places on the bus; a GPU may also go by its UUID.
    known = [gpus[int(d)] if d.isdigit() and int(d) < len(gpus) else -1 for d in devices]
    shares = placement.gpu_shares(devices, known, nodes, options.gpus_per_rank)
    seen = [d for share in shares for d in share] if options.share_gpus else shares[numbers.local_rank]
    environ["CUDA_VISIBLE_DEVICES"] = ",".join(seen)
    # CUDA's own order is by speed; the numbers of schedulers and of nvidia-smi are by bus.
    environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")


def address_of(interface: str) -> str:
    """Return this host's IPv4 address on `interface`. Raises OSError when it has none."""
    import fcntl
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("256s", interface.encode()[:15])
        answer = fcntl.ioctl(probe.fileno(), 0x8915, request)  # SIOCGIFADDR
    return socket.inet_ntoa(answer[20:24])


def take_stdin(name: str) -> None:
    """Take the descriptor that transect/launch/supervise.py offers for our standard input.

    Without it, as in a script of `--dry-run`, what the launcher has given stays.
    """
    with socket.socket(socket.AF_UNIX) as giver:
        try:
            giver.connect("\0" + name)
        except OSError:
            return
        # Python 3.8 has no socket.recv_fds.
        _, messages, _, _ = giver.recvmsg(1, socket.CMSG_SPACE(4))
    for _, _, data in messages:
        found = int.from_bytes(data[:4], sys.byteorder)
        os.dup2(found, 0)
        os.close(found)


def environment(options: argparse.Namespace, environ: Mapping[str, str]) -> tuple[Numbers, dict[str, str]]:
    """Return the rank's numbers and its whole environment, without binding."""
    numbers = find_numbers(environ, options.numbered_by, options.ranks_per_node)
    variables = dict(environ)
    for pair in options.set:
        name, _, template = pair.partition("=")
        variables[name] = fill(template, numbers)
    return numbers, variables


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Start one rank; `transect launch` calls this.")
    add = parser.add_argument
    add("--numbered-by", choices=["auto", *_VARIABLES], default="auto", help="who numbers the ranks")
    add("--ranks-per-node", type=lambda text: [*map(int, text.split(","))], default=(), metavar="N[,N...]")
    add("--threads", type=int, default=1)
    add("--set", action="append", default=[], metavar="NAME=TEMPLATE")
    add("--bind", choices=["never", "auto", "always"], default="never")
    add("--gpus-per-rank", type=int, default=0)
    add("--share-gpus", action="store_true", help="show all GPUs of the node to each rank")
    add("--label", action="store_true", help="begin lines of output with `[rank] `")
    add("--service", action="append", default=[], type=json.loads, metavar="JSON")
    add("--stdin-at", metavar="NAME", help="rank 0 takes its standard input there")
    add("--address", metavar="INTERFACE", help="print `host address`, or `rank address` of MPI, and end")
    add("command", nargs="*")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Become the command, or run it; return its exit code, 128 + number for a signal."""
    options = _parser().parse_args(argv)
    who = "?"
    try:
        if options.address:
            mpi = options.numbered_by == "mpi"
            who = str(find_numbers(os.environ, "mpi", [1]).rank) if mpi else socket.gethostname()
            # One write: ranks share a pipe.
            print(f"{who} {address_of(options.address)}\n", end="")
            return 0
        numbers, environ = environment(options, os.environ)
        who = str(numbers.rank)
        place(options, numbers, environ)
        if options.stdin_at and numbers.rank == 0:
            take_stdin(options.stdin_at)
    except (ValueError, OSError) as error:
        print(f"[{who}] transect: on {socket.gethostname()}: {error}", file=sys.stderr)
        return 2
    starts = numbers.local_rank == 0
    services = [s for s in options.service if starts and (s["on"] == "every-node" or numbers.node == 0)]
    waits = [service["wait_for"] for service in options.service if service["wait_for"]]
    if options.label or services or waits:
        import parent  # type: ignore[import-not-found]  # the file beside this one

        forwards = options.numbered_by != "slurm"
        child = parent.Child(options.command, environ, rank=who, label=options.label, forwards=forwards)
        return int(child.run(services, waits, numbers.node))
    try:
        os.execvpe(options.command[0], options.command, environ)  # noqa: S606 no shell is meant
    except OSError as error:
        print(f"[{who}] transect: cannot start {options.command[0]!r}: {error}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    # Python put this file's folder first on its path, where transect's modules lie by short names.
    sys.path[0] = str(Path(__file__).resolve().parent)
    sys.exit(main())
