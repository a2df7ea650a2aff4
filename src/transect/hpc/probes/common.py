"""What the probes share: the machine's memory and caches, and the form of their log."""

from __future__ import annotations

import os
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

FORMAT = 1


def available_memory() -> int:
    """Bytes that can be allocated without swapping, by the kernel and the cgroup's limit.

    Returns 1 GiB when the system does not say.
    """
    free = [1 << 30]
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        if (match := re.search(r"MemAvailable:\s*(\d+) kB", text)) is not None:
            free = [int(match[1]) * 1024]
    except OSError:
        pass
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            free.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):  # no such cgroup version, or the limit is "max"
            continue
    return max(0, min(free))


def last_level_cache(root: Path = Path("/sys/devices/system/cpu")) -> int | None:
    """Bytes of last-level cache that this process's CPUs can use, or None when Linux does not say.

    Caches are told apart by the CPUs that share them and added up: two sockets have two.
    """
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
    sizes: dict[tuple[int, str], int] = {}
    for cpu in cpus:
        for index in (root / f"cpu{cpu}" / "cache").glob("index*"):
            try:
                kind = (index / "type").read_text().strip()
                level = int((index / "level").read_text())
                size = (index / "size").read_text().strip()
                shared = (index / "shared_cpu_list").read_text().strip()
            except (OSError, ValueError):
                continue
            match = re.fullmatch(r"(\d+)([KMG]?)", size)
            if match is not None and kind != "Instruction":
                sizes[level, shared] = int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]
    if not sizes:
        return None
    top = max(level for level, _ in sizes)
    return sum(size for (level, _), size in sizes.items() if level == top)


def cpu_flags() -> set[str]:
    """Return what vector instructions and the like this processor has; none where Linux does not say."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return set()
    found = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return set(found[1].split()) if found else set()


def require_world(comm_size: int, expected: int | None) -> list[str]:
    """Return what is wrong with a world of `comm_size` ranks for a cell that has `expected`; None expects nothing.

    A launcher of another MPI starts every rank as a world of its own, whose results look right.
    """
    if expected is None or comm_size == expected:
        return []
    cell = f"the cell has {expected} {'rank' if expected == 1 else 'ranks'}"
    why = ": its launcher may belong to another MPI" if comm_size == 1 else ""
    return [f"started as a world of {comm_size}, {cell}{why}"]


def say(key: str, value: object) -> None:
    """Print one `key: value` line."""
    print(f"{key}: {value}", flush=True)


def say_samples(label: str, seconds: Sequence[float]) -> None:
    """Print every raw sample of one series, one per line, in seconds with all digits."""
    for index, value in enumerate(seconds):
        print(f"sample {label} {index} {value:.9f}")


def say_result(label: str, seconds: Sequence[float], unit: str = "s", work: float | None = None) -> None:
    """Print the best and the median of a series, or of `work` over it."""
    best, median = min(seconds), statistics.median(seconds)
    if work is not None:
        best, median = work / best, work / median
    print(f"result {label} best {best:.6e} {unit} median {median:.6e} {unit} runs {len(seconds)}")


def head(name: str, note: str, numpy_version: str) -> None:
    """Print the first lines of a probe's log."""
    print(f"transect probe {name} {FORMAT}", flush=True)
    say("note", note)
    say("python", sys.version.split()[0])
    say("numpy", numpy_version)
    say("cpus", len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


def tail(name: str, problems: Sequence[str]) -> int:
    """Print the status and the last line of a probe's log; return the exit code."""
    say("status", "ok" if not problems else f"invalid: {'; '.join(problems)}")
    print(f"end of transect probe {name}", flush=True)
    return 1 if problems else 0
