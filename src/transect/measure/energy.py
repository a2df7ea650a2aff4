"""Energy from counters that the hardware adds up by itself: RAPL of the CPU, NVML of a GPU.

A counter integrates in hardware, so two readings are exact to its unit however long they are
apart, as long as it has not wrapped more than once in between.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

POWERCAP = Path("/sys/class/powercap")
# Two dies of one socket are `package-0-die-0` and `package-0-die-1`. `psys`, the whole board, and
# `core` and `uncore`, parts of a package, would count the same energy twice.
_PACKAGE = re.compile(r"package-\d+(-die-\d+)?")


class EnergyCounter:
    """Joules from its making to the last `read`. Raises what `value` raises at its making.

    `value` returns the counter, of which one is `unit` joules; it starts anew after `limit`.
    """

    def __init__(self, source: str, value: Callable[[], int], unit: float, limit: int | None = None) -> None:
        self.source = source
        self._value, self._unit, self._limit = value, unit, limit
        self._last, self._sum, self._lost = value(), 0, False
        self._begin = self._end = time.perf_counter()

    def read(self) -> None:
        """Add what was used since the last reading."""
        try:
            now = self._value()
        except Exception:  # a driver that was reloaded, a right that was taken: no number then
            self._lost = True
            return
        used = now - self._last
        if used < 0 and self._limit is not None:
            used += self._limit
        self._lost = self._lost or used < 0
        self._last, self._sum, self._end = now, self._sum + used, time.perf_counter()

    def result(self) -> list[dict[str, Any]]:
        """Return one entry: `source`, `method`, `joules`, `seconds`; none if a reading failed."""
        if self._lost:
            return []
        seconds, joules = self._end - self._begin, self._sum * self._unit
        return [{"source": self.source, "method": "counter", "joules": joules, "seconds": seconds}]


def rapl_counters(root: Path = POWERCAP) -> list[EnergyCounter]:
    """Return the CPU packages' counters and those of their memory; of the whole node.

    Empty where the kernel has none, or lets only root read them. AMD's zones have these names too.
    Source: https://docs.kernel.org/power/powercap/powercap.html
    """
    found = []
    for zone in sorted(root.glob("intel-rapl:*")):
        try:
            name = (zone / "name").read_text().strip()
            if name == "dram":
                parent = root / zone.name.rpartition(":")[0]
                name = f"{(parent / 'name').read_text().strip()}:dram"
            elif not _PACKAGE.fullmatch(name):
                continue
            limit = int((zone / "max_energy_range_uj").read_text())
            found.append(EnergyCounter(f"rapl:{name}", _reader(zone / "energy_uj"), 1e-6, limit))
        except (OSError, ValueError):
            continue
    return found


def _reader(path: Path) -> Callable[[], int]:
    return lambda: int(path.read_text())


def nvml_counter(library: Any, handle: Any, index: int) -> list[EnergyCounter]:
    """Return the counter of a GPU, by its index in NVML; empty where the GPU has none.

    `library` is pynvml, initialised. The counter is in millijoules (nvmlDeviceGetTotalEnergy-
    Consumption, Volta or newer).
    """

    def value() -> int:
        return int(library.nvmlDeviceGetTotalEnergyConsumption(handle))

    try:
        return [EnergyCounter(f"nvml:{index}", value, 1e-3)]
    except Exception:  # an older GPU, a part of one, no right: all mean that it is not told
        return []
