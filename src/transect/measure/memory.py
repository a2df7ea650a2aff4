"""How much memory a node has, or a job of it."""

from __future__ import annotations

import re
from pathlib import Path

import psutil


def node_memory(root: Path = Path("/")) -> int:
    """Bytes of this node's memory, or of the control group's limit where that is less.

    The total and not what is free now: repeats of a cell must solve the same problem.
    Returns 1 GiB when the system does not say.
    """
    sizes = [1 << 30]
    try:
        text = (root / "proc/meminfo").read_text(encoding="ascii")
        if (match := re.search(r"MemTotal:\s*(\d+) kB", text)) is not None:
            sizes = [int(match[1]) * 1024]
    except OSError:
        pass
    groups = root / "sys/fs/cgroup"
    limits = [groups / "memory.max", groups / "memory/memory.limit_in_bytes"]
    try:
        cgroup = re.search(r"(?m)^0::/(.+)$", (root / "proc/self/cgroup").read_text())
        # A job's limit may stand in any group above the one of its step.
        group = groups / cgroup[1] if cgroup is not None and ".." not in cgroup[1] else groups
        while group != groups:
            limits.append(group / "memory.max")
            group = group.parent
    except OSError:
        pass
    for limit in limits:
        try:
            sizes.append(int(limit.read_text()))
        except (OSError, ValueError):  # another version of control groups, or "max"
            continue
    return min(sizes)


def available_bytes(held: int) -> int:
    """Return the memory that this machine has left, or this job, of which payloads hold so much already."""
    return min(int(psutil.virtual_memory().available), node_memory() - held)
