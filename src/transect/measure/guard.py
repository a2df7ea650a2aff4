"""The interference guard: who else used the machine before and after a cell."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from transect.measure import pressure
from transect.measure.step_daemons import daemon_died

# A foreign process counts as a disturbance from this share of one core.
BUSY = 0.2
# The kernel's total is in ticks for each core, and a look of the guard's own costs some.
UNSEEN = 0.75
# Less than this share of memory free means that the kernel is already reclaiming.
_LITTLE_MEMORY = 0.03
# Daemons that start and watch our own job steps.
_SLURM = ("slurmstepd", "slurmd", "srun", "munged")
_CPUS = Path("/sys/devices/system/cpu")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# Quiet turns without which a cell is disturbed.
_ENOUGH_TURNS = 4
# What was seen after a payload holds for this long before the next one: less than the window in
# which a stranger has to be busy to be seen, times the share of one that counts.
_FRESH_S = 0.25


class _Process(NamedTuple):
    """A line of /proc/PID/stat: psutil takes ten times as long to read them all."""

    name: str
    parent: int
    # In the kernel's ticks since boot: with the process id, no other process has it.
    started: int
    cpu_s: float


def _processes() -> dict[int, _Process]:
    processes = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 names are enough
        if not name.isdigit():
            continue
        with suppress(OSError):  # it has ended
            descriptor = os.open(f"/proc/{name}/stat", os.O_RDONLY)
            try:
                text = os.read(descriptor, 4096).decode(errors="replace")
            finally:
                os.close(descriptor)
            head, _, tail = text.rpartition(")")
            fields = tail.split()
            used = (int(fields[11]) + int(fields[12])) * _TICK_S
            command = head.partition("(")[2]
            processes[int(name)] = _Process(command, int(fields[1]), int(fields[19]), used)
    return processes


def _family(processes: dict[int, _Process]) -> set[int]:
    pid, family = os.getpid(), set()
    while pid in processes and pid not in family:
        family.add(pid)
        pid = processes[pid].parent
    return family


def _ours(pid: int, process: _Process, job: str | None) -> bool:
    if job is None:
        return False
    if process.name.startswith(_SLURM):
        return True
    try:
        return f"SLURM_JOB_ID={job}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _busy_s() -> float:
    """Return the seconds that all cores together have been busy since boot, this process's too."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - times.guest)


def _foreign(window_s: float) -> tuple[list[dict[str, Any]], float]:
    """Return the processes that are busy now and not of our own family or job, and the cores
    that are busy with what cannot be seen from here: another container, or a virtual node.
    """
    job = os.environ.get("SLURM_JOB_ID")
    before = _processes()
    ours = _family(before)
    start, busy = time.perf_counter(), _busy_s()
    time.sleep(window_s)
    elapsed, busy = time.perf_counter() - start, _busy_s() - busy
    foreign, seen = [], 0.0
    for pid, process in _processes().items():
        first = before.get(pid)
        if pid in ours or first is None or first.started != process.started:
            continue
        # The kernel counts in ticks of 10 ms, so a share is a multiple of tick over window.
        share = (process.cpu_s - first.cpu_s) / elapsed
        seen += share
        if share >= BUSY and not _ours(pid, process, job):
            foreign.append({"pid": pid, "name": process.name, "cores": round(share, 2)})
    return foreign, round(max(0.0, busy / elapsed - seen), 2)


def _throttled() -> int | None:
    """Return how often cores were slowed down for heat since boot; None where nobody counts."""
    counts = []
    for path in _CPUS.glob("cpu[0-9]*/thermal_throttle/core_throttle_count"):
        try:
            counts.append(int(path.read_text()))
        except (OSError, ValueError):
            continue
    return sum(counts) if counts else None


def _clock_mhz() -> float | None:
    """Return the mean clock of the cores now; None where the kernel does not tell."""
    clocks = []
    for path in _CPUS.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        try:
            clocks.append(int(path.read_text()) / 1000)
        except (OSError, ValueError):
            continue
    return sum(clocks) / len(clocks) if clocks else None


@cache
def _nvml() -> Any:
    """Return NVML, held open: to open it takes longer than to look. None where there is none."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no library, no driver, no permission: all mean that none can be read
        return None
    return pynvml


def _gpus() -> list[dict[str, Any]]:
    """Return use, clocks, throttling and processes of every NVIDIA GPU; empty without any."""
    pynvml = _nvml()
    if pynvml is None:
        return []
    gpus = []
    # Idle clocks and the application's own limits are no throttling.
    harmless = 0x1 | 0x2
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        use = pynvml.nvmlDeviceGetUtilizationRates(handle)
        reasons = int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        gpus.append(
            {
                "index": index,
                "busy": use.gpu / 100,
                "memory_used_bytes": int(pynvml.nvmlDeviceGetMemoryInfo(handle).used),
                "sm_clock_mhz": int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
                "throttle_reasons": reasons & ~harmless,
                "processes": [int(process.pid) for process in processes],
            }
        )
    return gpus


def _swapped() -> int:
    facts = psutil.swap_memory()
    return int(facts.sin + facts.sout)


def _disk() -> dict[str, int] | None:
    counters = psutil.disk_io_counters()
    if counters is None:
        return None
    return {"read_bytes": counters.read_bytes, "write_bytes": counters.write_bytes}


def snapshot(window_s: float = 0.05) -> dict[str, Any]:
    """Return this node's load, foreign processes, memory, I/O, clocks, throttling and GPUs.

    `foreign` lists name, pid and cores used over `window_s` seconds, `unseen_cores` what the kernel
    counts as busy beyond every process that can be seen; `pressure.look` says the rest. Counters (swap, disk,
    throttling) are totals since boot. Raises nothing: what cannot be read is None or empty.
    """
    memory = psutil.virtual_memory()
    counters = pressure.counters()
    foreign, unseen = _foreign(window_s)
    return {
        "host": socket.gethostname(),
        "load": list(os.getloadavg()),
        "foreign": foreign,
        "unseen_cores": unseen,
        "memory_available_bytes": int(memory.available),
        "memory_total_bytes": int(memory.total),
        "swapped_bytes": _swapped(),
        "disk": _disk(),
        **pressure.look(counters),
        "clock_mhz": _clock_mhz(),
        "throttle_count": _throttled(),
        "gpus": _gpus(),
    }


def disturbances(
    before: list[dict[str, Any]], after: list[dict[str, Any]], quiet_turns: Sequence[bool] = ()
) -> list[str]:
    """Return in words what disturbed a cell, from the snapshots of its nodes; empty: nothing.

    Of one that took turns, whether nobody else used the machine in each of them says more than two looks.
    """
    reasons = []
    earlier = {node["host"]: node for node in before}
    if quiet_turns and sum(quiet_turns) < max(len(quiet_turns) / 2, min(_ENOUGH_TURNS, len(quiet_turns))):
        turns = len(quiet_turns)
        reasons.append(f"others used the machine in {turns - sum(quiet_turns)} of {turns} turns")
    for when, snapshots in (("before", before), ("after", after)) if not quiet_turns else ():
        for node in snapshots:
            reasons += [
                f"{who['name']} (pid {who['pid']}) used {who['cores']:g} cores {when} it on {node['host']}"
                for who in node.get("foreign", [])
            ]
            if node.get("unseen_cores", 0.0) >= UNSEEN:
                reasons.append(
                    f"{node['unseen_cores']:g} cores of {node['host']} were busy {when} it with "
                    "what cannot be seen from there"
                )
            reasons += pressure.pressed(node, when)
            if "missing" in node:
                reasons.append(f"{node['host']} did not answer the guard {when} it")
    for node in after:
        first = earlier.get(node["host"])
        if first is None or "missing" in node or "missing" in first:
            continue
        host = node["host"]
        if node["memory_available_bytes"] < _LITTLE_MEMORY * node["memory_total_bytes"]:
            reasons.append(f"memory ran short on {host}")
        if node["swapped_bytes"] > first["swapped_bytes"]:
            reasons.append(f"{host} swapped")
        reasons += pressure.slower(first, node)
        counts = node["throttle_count"], first["throttle_count"]
        if None not in counts and counts[0] > counts[1]:
            reasons.append(f"cores of {host} were throttled for heat")
        reasons += [
            f"GPU {gpu['index']} of {host} was throttled (reasons {gpu['throttle_reasons']:#x})"
            for gpu in node["gpus"]
            if gpu["throttle_reasons"]
        ]
        # Our own ranks have ended: whoever still computes there is somebody else.
        reasons += [
            f"pid {pid} used GPU {gpu['index']} of {host}"
            for gpu in [*first["gpus"], *node["gpus"]]
            for pid in gpu["processes"]
        ]
    return list(dict.fromkeys(reasons))


class Guard:
    """Looks at the node that it runs on. Subclasses look at all nodes of an allocation."""

    # When the last payload had ended, and what was seen then.
    _after: tuple[float, list[dict[str, Any]]] = (-_FRESH_S, [])

    def look(self) -> list[dict[str, Any]]:
        """Return one snapshot for each node."""
        return [snapshot()]

    def died(self, step: str) -> list[str]:
        """Return the nodes on which the daemon of a job step has died."""
        return [socket.gethostname()] if daemon_died(step) else []

    def before(self) -> list[dict[str, Any]]:
        """Look before a payload. What was seen after the last one counts when it just ended.

        Unless somebody disturbed that one: who has gone meanwhile is not to be seen twice.
        """
        when, seen = self._after
        if time.monotonic() - when < _FRESH_S and not disturbances(seen, seen):
            return seen
        return self.look()

    def after(self) -> list[dict[str, Any]]:
        """Look after a payload."""
        seen = self.look()
        self._after = (time.monotonic(), seen)
        return seen
