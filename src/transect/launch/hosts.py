"""The hosts of the present allocation, whichever scheduler gave it, and how many ranks each was given for."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transect.domain.errors import BadInput, MissingDependency
from transect.launch.slurm import ask, each_node, expand_hosts, job_hosts

# What a scheduler, or a person, may call a host: mpiexec reads more into other signs.
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# A user's own list, as `transect launch --hosts` sets it; a study on `profiles/local` reads it too.
HOSTS = "TRANSECT_HOSTS"
# More than any machine has: what is above is a slip, and lists of so many would fill the memory.
MOST_RANKS = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """Distinct hosts in the order of ranks, with the ranks that were asked for on each."""

    source: str
    hosts: tuple[str, ...]
    ranks: tuple[int, ...]


def of_hosts(source: str, listed: Sequence[str]) -> Allocation:
    """Make an allocation of a list in which a host stands once for each of its ranks."""
    counts = Counter(listed)
    for host in counts or [""]:
        if not _HOST.fullmatch(host):
            raise BadInput(f"{source}: {host!r} is no name or IPv4 address of a host, such as those of a,a,b")
    return Allocation(source=source, hosts=tuple(counts), ranks=tuple(counts.values()))


def _lines(variable: str, path: str) -> list[list[str]]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise MissingDependency(f"{variable}={path}: {error.strerror}") from None
    return [words for line in text.splitlines() if (words := line.split())]


def _slurm(environ: Mapping[str, str]) -> Allocation:
    hosts = job_hosts(environ)
    # Without SLURM_NTASKS nobody asked for tasks, and the counts are those of CPUs.
    counts = each_node(environ.get("SLURM_TASKS_PER_NODE", "")) if "SLURM_NTASKS" in environ else []
    # Within a job step they are those of the step.
    ranks = counts if len(counts) == len(hosts) else [1] * len(hosts)
    return Allocation(source="Slurm", hosts=tuple(hosts), ranks=tuple(ranks))


def allocation(environ: Mapping[str, str] = os.environ) -> Allocation | None:
    """Return the hosts that this process may start ranks on; None: it knows of this machine alone.

    `TRANSECT_HOSTS` (`n1,n[2-4]`) wins over schedulers: Slurm; PBS and Torque (`PBS_NODEFILE`, a line
    for each rank); LSF (`LSB_DJOB_HOSTFILE` or `LSB_HOSTS`, a word for each slot); Grid Engine
    (`PE_HOSTFILE`: host, slots, …); Flux (`flux hostlist`, flux-core 0.61 or later).
    Raises BadInput for a list that is none, MissingDependency when a scheduler, or its file, cannot be
    read.
    """
    if environ.get(HOSTS):
        return of_hosts(HOSTS, expand_hosts(environ[HOSTS]))
    if "SLURM_JOB_ID" in environ:
        return _slurm(environ)
    for variable in ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE"):
        if environ.get(variable):
            lines = _lines(variable, environ[variable])
            slots = [int(words[1]) if variable == "PE_HOSTFILE" else 1 for words in lines]
            return of_hosts(
                variable, [words[0] for words, count in zip(lines, slots, strict=True) for _ in range(count)]
            )
    if environ.get("LSB_HOSTS"):
        return of_hosts("LSB_HOSTS", environ["LSB_HOSTS"].split())
    if environ.get("FLUX_JOB_ID") or environ.get("FLUX_URI"):
        listed = ask("flux", "hostlist", "--expand", "local").split()
        hosts = tuple(dict.fromkeys(listed))
        return Allocation(source="Flux", hosts=hosts, ranks=(1,) * len(hosts))
    return None


def ranks_on(
    given: Allocation | None, *, nodes: int | None = None, ranks: int | None = None, ranks_per_node: int | None = None
) -> tuple[int, ...]:
    """Return the number of ranks on each node; what is not asked for is as the allocation has it.

    `ranks` that do not divide are dealt out evenly, the first nodes have one more. Raises BadInput when
    a count is no count, or a node would have no rank.
    """
    if any(value is not None and not 1 <= value <= MOST_RANKS for value in (nodes, ranks, ranks_per_node)):
        raise BadInput(f"--nodes, --ranks, --ranks-per-node: expected 1 to {MOST_RANKS}")
    if ranks is not None and ranks_per_node is not None:
        raise BadInput("--ranks and --ranks-per-node: give one of them")
    there = len(given.hosts) if given is not None else 1
    count = nodes or min(there, ranks or there)
    if given is not None and count > there:
        raise BadInput(f"--nodes {count}: the allocation ({given.source}) has {there}: {','.join(given.hosts)}")
    if count * (ranks_per_node or 1) > MOST_RANKS:
        raise BadInput(f"{ranks_per_node} ranks on each of {count} nodes: expected {MOST_RANKS} in all at most")
    if ranks is not None:
        if ranks < count:
            raise BadInput(f"--ranks {ranks} on {count} nodes: expected a rank for each node")
        return tuple(ranks // count + (node < ranks % count) for node in range(count))
    if ranks_per_node is not None or given is None:
        return (ranks_per_node or 1,) * count
    return given.ranks[:count]
