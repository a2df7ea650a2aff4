"""Which cores and GPUs each local rank gets, as /sys tells the topology.

Standard library only, Python 3.8 or later: rank.py loads this file beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

SYS = Path("/sys")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def parse_list(text: str) -> list[int]:
    """Read the kernel's list format: `0-2,8` is [0, 1, 2, 8]. Raises ValueError for anything else."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def numa_nodes(sys: Path = SYS) -> dict[int, int]:
    """Return the NUMA node of each logical CPU; empty when the kernel does not say."""
    nodes = {}
    for folder in (sys / "devices/system/node").glob("node[0-9]*"):
        for cpu in parse_list(_read(folder / "cpulist")):
            nodes[cpu] = int(folder.name[4:])
    return nodes


def _cores(allowed: set[int], sys: Path) -> list[tuple[int, list[int]]]:
    """Return (NUMA node, hardware threads) of each physical core that may be used, in order."""
    nodes = numa_nodes(sys)
    seen: set[int] = set()
    cores = []
    for cpu in sorted(allowed):
        if cpu in seen:
            continue
        path = sys / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        siblings = sorted((set(parse_list(_read(path))) | {cpu}) & allowed)
        seen.update(siblings)
        cores.append((nodes.get(cpu, 0), siblings))
    return sorted(cores)


def _split(nodes: list[int], ranks: int, threads: int) -> list[range]:
    size = len(nodes) // ranks
    whole = [range(r * size, (r + 1) * size) for r in range(ranks)]
    ends = {i for i in range(1, len(nodes)) if nodes[i] != nodes[i - 1]} | {0, len(nodes)}

    def tidy(block: range) -> bool:
        inside = nodes[block.start] == nodes[block.stop - 1]
        return inside or {block.start, block.stop} <= ends

    if all(tidy(block) for block in whole):
        return whole
    # Smaller blocks that stay inside a node are better, as long as each thread has a core.
    for smaller in range(size, max(threads, 1) - 1, -1):
        fitting = [
            range(start, start + smaller)
            for first, last in zip(sorted(ends), sorted(ends)[1:])  # noqa: B905 Python 3.8
            for start in range(first, last - smaller + 1, smaller)
        ]
        if len(fitting) >= ranks:
            return fitting[:ranks]
    return whole


def core_blocks(allowed: set[int], ranks: int, threads: int = 1, sys: Path = SYS) -> list[set[int]] | None:
    """Return the logical CPUs of each local rank, or None where binding would do harm.

    Each rank gets the same number of whole cores, in one NUMA node or in whole nodes where that
    is possible with a core for each of its `threads`. One rank keeps all that it has, and ranks
    that must share cores are left to the kernel.
    """
    cores = _cores(allowed, sys)
    if ranks < 2 or len(cores) < ranks * threads:
        return None
    blocks = _split([node for node, _ in cores], ranks, threads)
    return [{cpu for i in block for cpu in cores[i][1]} for block in blocks]


def already_bound(mask: set[int], environ: Mapping[str, str], limit: set[int]) -> bool:
    """Tell whether a launcher bound this rank, or left it cores that are not its own alone.

    `limit` is what the cgroup allows. A mask that is wider than the job step's share of the node
    says that the scheduler does not confine its jobs: the other cores may be another job's.
    """
    if mask < limit and environ.get("SLURM_CPU_BIND_TYPE", "none") != "none":
        return True
    share = environ.get("SLURM_CPUS_ON_NODE", "")
    return "SLURM_STEP_ID" in environ and share.isdigit() and len(mask) > int(share)


def cgroup_cpus(sys: Path = SYS, proc: Path = Path("/proc")) -> set[int]:
    """Return the logical CPUs that the cgroup allows, or all that are online."""
    for line in _read(proc / "self/cgroup").splitlines():
        _, controllers, folder = line.split(":", 2)
        names = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")
        if controllers in ("", "cpuset"):
            root = sys / "fs/cgroup" / controllers / folder.strip("/")
            for name in names:
                if text := _read(root / name):
                    return set(parse_list(text))
    return set(parse_list(_read(sys / "devices/system/cpu/online"))) or os.sched_getaffinity(0)


def gpu_nodes(sys: Path = SYS, proc: Path = Path("/proc"), dev: Path = Path("/dev")) -> list[int]:
    """Return the NUMA node of each NVIDIA GPU that may be opened, in PCI bus order; -1 unknown."""
    found = []
    for folder in sorted((proc / "driver/nvidia/gpus").glob("*")):
        minor = ""
        for line in _read(folder / "information").splitlines():
            if line.startswith("Device Minor:"):
                minor = line.split(":")[1].strip()
        # A scheduler's cgroup shows all GPUs here and lets only the job's own be opened.
        if _opens(dev / f"nvidia{minor}"):
            text = _read(sys / "bus/pci/devices" / folder.name.lower() / "numa_node")
            found.append(int(text) if text else -1)
    return found


def _opens(path: Path) -> bool:
    try:
        os.close(os.open(str(path), os.O_RDWR))
    except OSError:
        return False
    return True


def gpu_shares(
    devices: Sequence[str], device_nodes: Sequence[int], rank_nodes: Sequence[int | None], per_rank: int
) -> list[list[str]]:
    """Deal `per_rank` devices to each local rank, near its NUMA node where that is known.

    `device_nodes` may be shorter than `devices`, or empty. Raises ValueError when there are too few.
    """
    if len(devices) < per_rank * len(rank_nodes):
        ranks, needed = len(rank_nodes), per_rank * len(rank_nodes)
        who = "1 rank needs" if ranks == 1 else f"{ranks} ranks need"
        what = "1 GPU" if needed == 1 else f"{needed} GPUs"
        raise ValueError(f"{who} {what}, this node shows {','.join(devices) or 'none'}")
    places = dict(zip(devices, device_nodes))  # noqa: B905 Python 3.8
    left = list(devices)
    shares: list[list[str]] = [[] for _ in rank_nodes]
    # First those that are near, then whatever is left: nobody takes another one's near GPU.
    for near in (True, False):
        for rank, node in enumerate(rank_nodes):
            for device in list(left):
                if len(shares[rank]) < per_rank and (not near or places.get(device, -1) == node):
                    shares[rank].append(device)
                    left.remove(device)
    return shares
