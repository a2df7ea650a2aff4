"""The interference guard: who else used the machine before and after a cell."""

from __future__ import annotations

import os
import time
from typing import Any

import psutil

__all__ = ["BUSY", "snapshot"]

# A foreign process counts as a disturbance from this share of one core.
BUSY = 0.2


def snapshot(window_s: float = 0.05) -> dict[str, Any]:
    """Return load average and the processes that are busy now and not our own family.

    `foreign` lists name, pid and cores used over `window_s` seconds. Raises nothing: a process
    that ends meanwhile is left out.
    """
    ours = {process.pid for process in psutil.Process().parents()} | {os.getpid()}
    before: dict[int, tuple[psutil.Process, float]] = {}
    for process in psutil.process_iter():
        try:
            times = process.cpu_times()
            before[process.pid] = (process, times.user + times.system)
        except psutil.Error:
            continue
    start = time.perf_counter()
    time.sleep(window_s)
    elapsed = time.perf_counter() - start
    foreign = []
    for pid, (process, used) in before.items():
        if pid in ours:
            continue
        try:
            times = process.cpu_times()
            # The kernel counts in ticks of 10 ms, so a share is a multiple of tick over window.
            share = (times.user + times.system - used) / elapsed
            if share >= BUSY:
                foreign.append({"pid": pid, "name": process.name(), "cores": round(share, 2)})
        except psutil.Error:
            continue
    return {"load": list(os.getloadavg()), "foreign": foreign}
