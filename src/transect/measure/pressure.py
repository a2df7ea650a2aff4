"""What disks and networks do while nothing of ours runs, and what a small write costs: for the guard."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import psutil

# Of the time of a look in which somebody waited for a disk. A log that is written now and then stays below a tenth.
WAITING = 0.5
# Of what an interface can carry; where the kernel does not say that, of a link of 1 Gbit/s.
LOADED = 0.1
_BYTES_PER_MBIT = 125_000
_USUAL_MBIT = 1000
# A write that takes so many times as long as before, and so long, says that the folder's file system got busy.
CANARY_FACTOR, CANARY_S = 10, 0.1
_CANARY_BYTES = 4096
_STALLED = re.compile(r"^some .*total=(\d+)$", re.MULTILINE)
# Of each network mount in /proc/self/mountstats, fields of proc(5): bytes read from and written to the server.
_MOUNT = re.compile(
    r"^device .* mounted on (\S+) with fstype nfs.*?^\s*bytes:\s+((?:\d+\s+){7}\d+)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Counters:
    """Totals since boot: seconds in which somebody waited for a disk, bytes by interface and by network mount."""

    at: float
    stalled_s: float | None
    moved: dict[str, int]


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:  # a kernel without it, or without the right to read it
        return ""


def mount_bytes(text: str) -> Iterator[tuple[str, int]]:
    """Yield each network mount of a mountstats file with the bytes that it has exchanged with its server."""
    for device in re.split(r"^(?=device )", text, flags=re.MULTILINE):
        if (match := _MOUNT.match(device)) is not None:
            fields = [int(word) for word in match[2].split()]
            yield match[1], fields[4] + fields[5]


def counters() -> Counters:
    """Read them now. What the kernel does not tell is None or left out."""
    stalled = _STALLED.search(_text("/proc/pressure/io"))
    interfaces = psutil.net_io_counters(pernic=True)
    moved = {name: one.bytes_sent + one.bytes_recv for name, one in interfaces.items() if name != "lo"}
    return Counters(
        at=time.perf_counter(),
        stalled_s=int(stalled[1]) / 1e6 if stalled else None,
        moved=moved | dict(mount_bytes(_text("/proc/self/mountstats"))),
    )


def between(first: Counters, last: Counters) -> dict[str, Any]:
    """Return the share of the time in which somebody waited for a disk, and bytes per second where any were moved."""
    elapsed = last.at - first.at
    waited = None
    if first.stalled_s is not None and last.stalled_s is not None:
        waited = round(min(1.0, (last.stalled_s - first.stalled_s) / elapsed), 3)
    rates = {name: round((total - first.moved.get(name, total)) / elapsed) for name, total in last.moved.items()}
    return {"disk_waiting": waited, "bytes_per_s": {name: rate for name, rate in rates.items() if rate > 0}}


def canary(folder: Path | None = None) -> float | None:
    """Return the seconds that writing 4 KiB to a folder's disk takes, the working folder's by default; None: it cannot be."""
    try:
        with TemporaryFile(dir=folder or Path.cwd()) as file:
            begin = time.perf_counter()
            file.write(bytes(_CANARY_BYTES))
            file.flush()
            os.fsync(file.fileno())
            return round(time.perf_counter() - begin, 6)
    except OSError:
        return None


def _limit(name: str) -> float:
    """Return the bytes per second of an interface or a mount from which it is loaded."""
    known = psutil.net_if_stats().get(name)
    return LOADED * ((known.speed if known else 0) or _USUAL_MBIT) * _BYTES_PER_MBIT


def pressed(node: dict[str, Any], when: str) -> Iterator[str]:
    """Yield in words what one look says of a node's disks and networks."""
    host, waiting = node["host"], node.get("disk_waiting")
    if waiting is not None and waiting >= WAITING:
        yield f"somebody waited for a disk of {host} for {waiting:.0%} of the look {when} it"
    for name, rate in node.get("bytes_per_s", {}).items():
        if rate >= node.get("loaded_from", {}).get(name, float("inf")):
            yield f"{rate / 1e6:.0f} MB/s went over {name} of {host} {when} it"


def slower(first: dict[str, Any], node: dict[str, Any]) -> Iterator[str]:
    """Yield in words that a small write took much longer after a payload than before it."""
    before, after = first.get("canary_s"), node.get("canary_s")
    if before and after and after >= CANARY_S and after >= CANARY_FACTOR * before:
        yield f"a write of 4 KiB on {node['host']} took {after:.2g} s after it and {before:.2g} s before"


def look(first: Counters) -> dict[str, Any]:
    """Return what has become of disks and networks since `first`, from where on each is loaded, and the canary's time."""
    seen = between(first, counters())
    limits = {name: _limit(name) for name in seen["bytes_per_s"]}
    # Where somebody waits anyway, that is told already, and the write may take seconds.
    quiet = (seen["disk_waiting"] or 0.0) < WAITING
    return {**seen, "loaded_from": limits, "canary_s": canary() if quiet else None}
