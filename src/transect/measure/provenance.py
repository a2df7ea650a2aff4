"""What a number was measured on: collected for every record, nothing invented when absent."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
from functools import cache
from pathlib import Path
from typing import Any


def available_cores() -> int:
    """Return the cores that this process may use: affinity, and the cgroup's CPU quota."""
    cores = len(os.sched_getaffinity(0))
    quota = _cgroup().get("cpu.max", "max").split()
    if quota and quota[0].isdigit() and len(quota) == 2:
        cores = min(cores, max(1, int(quota[0]) // int(quota[1])))
    return cores


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _cgroup() -> dict[str, str]:
    """Return the limits of this process's cgroup (version 2), as text; empty when unlimited."""
    line = next((row for row in _read("/proc/self/cgroup").splitlines() if row.startswith("0::")), "")
    folder = "/sys/fs/cgroup" + line[3:].rstrip("/")
    names = ("cpu.max", "memory.max", "cpuset.cpus.effective")
    return {name: text for name in names if (text := _read(f"{folder}/{name}"))}


@cache
def _machine() -> dict[str, Any]:
    fields: dict[str, set[str]] = {}
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), set()).add(value.strip())
    memory = _read("/proc/meminfo").splitlines()[:1]
    nodes = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
    return {
        "host": socket.gethostname(),
        "cpu_model": next(iter(fields.get("model name", {platform.processor() or "unknown"}))),
        "sockets": max(1, len(fields.get("physical id", ()))),
        "cores": available_cores(),
        "numa_nodes": max(1, len(nodes)),
        "memory_bytes": int(memory[0].split()[1]) * 1024 if memory else None,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cgroup": _cgroup(),
        "gpus": gpus(),
    }


@cache
def gpus() -> list[dict[str, Any]]:
    """Return the NVIDIA GPUs with driver and clocks, through NVML; an empty list without any."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no library, no driver, no permission: all mean that none is usable
        return []
    found = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        found.append(
            {
                "name": str(pynvml.nvmlDeviceGetName(handle)),
                "driver": str(pynvml.nvmlSystemGetDriverVersion()),
                "memory_bytes": int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
                "sm_clock_mhz": int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            }
        )
    pynvml.nvmlShutdown()
    return found


@cache
def git_state() -> dict[str, Any]:
    """Return commit and dirty flag of the checkout that runs; empty outside of git."""
    here = Path(__file__).resolve().parent

    def git(*arguments: str) -> str | None:
        try:
            run = subprocess.run(["git", "-C", str(here), *arguments], capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return run.stdout.strip() if run.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    if commit is None:
        return {}
    return {"commit": commit, "dirty": bool(git("status", "--porcelain", "--untracked-files=no"))}


# Job and hosts; those of other schedulers as engine/allocation.py notes them.
_JOB = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "TRANSECT_HOSTS")


def collect() -> dict[str, Any]:
    """Return machine, code and job: the part of a record's provenance that no payload knows."""
    slurm = {k: v for k, v in sorted(os.environ.items()) if k in _JOB}
    return {**_machine(), "git": git_state(), "slurm": slurm}
