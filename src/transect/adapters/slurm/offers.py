"""What a Slurm offers this user, for a first system file: partitions with their nodes, accounts, kinds of MPI."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from transect.adapters.slurm.doctor import absent, gpus, mpi_types, nodes_of, partition_lines, time_limit, usable
from transect.adapters.slurm.scheduler import accounting, ask, associations


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """A partition by its nodes that serve jobs. `cores`, `memory_mb` and `gpus` are those of the smallest of them."""

    name: str
    default: bool
    # Infinite where it has no limit.
    minutes: float
    nodes: int
    cores: int
    memory_mb: int
    gpus: int
    # Of all nodes, where these have one kind alone and a name for it.
    gpu_type: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Offers:
    """`accounts`: those that this user may charge; None: nobody tells. `modules`: what `module avail` names here."""

    cluster: str
    partitions: Sequence[Partition]
    accounts: Sequence[str] | None
    mpi_types: Sequence[str]
    modules: Sequence[str]


def _number(text: str) -> int:
    """Return a number of sinfo, which ends with + where nodes differ; 0 where it tells none."""
    found = re.match(r"\d+", text)
    return int(found[0]) if found else 0


def _partition(name: str, line: str) -> Partition | None:
    """Return a partition, or None where no job can run in it now."""
    state = re.search(r"\bState=(\S+)", line)
    nodes = [node for node in nodes_of(name) if usable(node["state"])]
    if not nodes or (state and state[1] != "UP"):
        return None
    kinds = {kind for node in nodes for kind in re.findall(r"gpu:([A-Za-z][\w.-]*):\d", absent(node["gres"]))}
    return Partition(
        name=name,
        default="Default=YES" in line,
        minutes=time_limit(line),
        nodes=len(nodes),
        cores=min(_number(node["cores"]) for node in nodes),
        memory_mb=min(_number(node["memory"]) for node in nodes),
        gpus=min(gpus(node["gres"], None) for node in nodes),
        gpu_type=next(iter(kinds)) if len(kinds) == 1 else None,
    )


def _modules() -> list[str]:
    """Return what `module avail` names in a login shell; nothing where there is no such command."""
    command = ["bash", "-lc", "module -t avail 2>&1"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    # Between them stand the folders that they lie in, which end with a colon.
    return [name.partition("(")[0] for line in lines if (name := line.strip()) and not name.endswith((":", "/"))]


def survey() -> Offers | None:
    """Ask Slurm; None where no controller answers."""
    config = ask("scontrol", "show", "config")
    if ask("scontrol", "ping") is None or config is None:
        return None
    name = re.search(r"^ClusterName\s*=\s*(\S+)", config, re.MULTILINE)
    found = (_partition(partition, line) for partition, line in partition_lines().items())
    known = associations() if accounting() else None
    return Offers(
        cluster=name[1] if name else "",
        partitions=[partition for partition in found if partition is not None],
        accounts=None if known is None else sorted(filter(None, known)),
        mpi_types=mpi_types() if shutil.which("srun") else [],
        modules=_modules(),
    )
