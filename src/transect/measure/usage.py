"""What training used: CPU time, GPU utilisation, energy where the machine reports it."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
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

    def skip(self) -> None:
        """Leave out what was used since the last reading, by whomever."""
        begin, used = self._end, self._sum
        self.read()
        self._begin, self._sum = self._begin + self._end - begin, used

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
    except Exception:  # an older GPU, a part of one, no right: all mean that it is unknown
        return []


GPU_PERIOD_S = 0.2
# A counter of 32 bits in units of 15 microjoules wraps after 65 kJ: more than this time uses.
READING_PERIOD_S = 30.0


def resident_bytes() -> int:
    """Return what this process holds of the machine's memory now, pages that it shares included."""
    import psutil

    return int(psutil.Process().memory_info().rss)


class Gpu:
    """One GPU through NVML: `index` is NVML's, in the order of the bus."""

    def __init__(self, library: Any, handle: Any, index: int) -> None:
        self.library, self.handle, self.index = library, handle, index
        self._busy: list[float] = []
        self._memory: list[int] = []

    def sample(self) -> None:
        """Note utilisation and used memory; a GPU that does not report one of them is left out for that one."""
        library = self.library
        with suppress(Exception):  # a part of a GPU has no utilisation
            self._busy.append(library.nvmlDeviceGetUtilizationRates(self.handle).gpu / 100)
        with suppress(Exception):  # no right
            self._memory.append(int(library.nvmlDeviceGetMemoryInfo(self.handle).used))

    def result(self) -> dict[str, Any]:
        """Return `gpu_index`, `gpu_samples`, and mean and greatest of what was sampled.

        Utilisation is the share of time in which a kernel ran, which NVML itself takes over up to
        a second. Memory is all that is used on the GPU, other processes' too.
        """
        usage: dict[str, Any] = {"gpu_index": self.index}
        if self._busy:
            usage["gpu_samples"] = len(self._busy)
            usage["gpu_utilisation_mean"] = sum(self._busy) / len(self._busy)
            usage["gpu_utilisation_max"] = max(self._busy)
        if self._memory:
            usage["gpu_memory_mean_bytes"] = sum(self._memory) / len(self._memory)
            usage["gpu_memory_max_bytes"] = max(self._memory)
        return usage


def find_gpu(local_rank: int, environ: Mapping[str, str] = os.environ) -> Gpu | None:
    """Return the GPU that a rank computes on: of those visible, the one of its local rank.

    None without pynvml, a driver or a GPU, and where CUDA's numbers cannot be told from the bus's:
    different GPUs in CUDA's own order, which is by speed.
    """
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no library, no driver, no permission: all mean that none can be read
        return None
    try:
        return _visible_gpu(pynvml, local_rank, environ)
    except Exception:  # a name in CUDA_VISIBLE_DEVICES that this NVML does not know
        return None


def _visible_gpu(pynvml: Any, local_rank: int, environ: Mapping[str, str]) -> Gpu | None:
    handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
    given = environ.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        visible = [str(index) for index in range(len(handles))]
    else:
        visible = [name.strip() for name in given.split(",") if name.strip()]
    if not visible or not handles:
        return None
    wanted = visible[local_rank % len(visible)]
    if wanted.startswith("MIG-"):
        part = pynvml.nvmlDeviceGetHandleByUUID(wanted)
        whole = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part)
        return Gpu(pynvml, part, int(pynvml.nvmlDeviceGetIndex(whole)))
    if wanted.startswith("GPU-"):
        # CUDA takes the beginning of a name where it is the only one so.
        same = [
            index for index, handle in enumerate(handles) if _text(pynvml.nvmlDeviceGetUUID(handle)).startswith(wanted)
        ]
        index = same[0] if len(same) == 1 else -1
    else:
        index = int(wanted)
        kinds = {_text(pynvml.nvmlDeviceGetName(handle)) for handle in handles}
        if len(kinds) > 1 and environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
            return None
    return Gpu(pynvml, handles[index], index) if 0 <= index < len(handles) else None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class Usage:
    """Watches this process from its making to `stop`.

    The node's RAPL counters are read by local rank 0 alone. Two ranks on one GPU both give its
    counter: energy is summed over hosts and sources, not over ranks. A thread runs only where
    there is something to sample.
    """

    def __init__(self, device: str, local_rank: int, powercap: Path = POWERCAP) -> None:
        self._gpu = find_gpu(local_rank) if device == "cuda" else None
        self._counters: list[EnergyCounter] = rapl_counters(powercap) if local_rank == 0 else []
        if self._gpu is not None:
            gpu = self._gpu
            self._counters += nvml_counter(gpu.library, gpu.handle, gpu.index)
        self._over = threading.Event()
        # Held while others have their turn.
        self._reading = threading.Lock()
        self._thread: threading.Thread | None = None
        if self._gpu is not None or self._counters:
            self._thread = threading.Thread(target=self._watch, name="usage", daemon=True)
            self._thread.start()
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def _watch(self) -> None:
        period = READING_PERIOD_S if self._gpu is None else GPU_PERIOD_S
        read = time.perf_counter()
        while not self._over.wait(period):
            with self._reading:
                if self._gpu is not None:
                    self._gpu.sample()
                if time.perf_counter() - read >= READING_PERIOD_S:
                    read = time.perf_counter()
                    for counter in self._counters:
                        counter.read()

    def pause(self) -> None:
        """Count no more until `resume`: others have their turn."""
        self._reading.acquire()
        for counter in self._counters:
            counter.read()
        self._paused = time.perf_counter()

    def resume(self) -> None:
        """Count again."""
        self._wall += time.perf_counter() - self._paused
        for counter in self._counters:
            counter.skip()
        self._reading.release()

    def stop(self) -> dict[str, Any]:
        """Return what was used; called once.

        `wall_s`; `cpu_s` of this process, all its threads; `cpu_utilisation`, their quotient, in
        cores; `energy`, a list of `EnergyCounter.result`, empty where nothing tells; on a GPU
        `Gpu.result`.
        """
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        for counter in self._counters:
            counter.read()
        usage: dict[str, Any] = {"wall_s": wall, "cpu_s": cpu, "cpu_utilisation": cpu / wall}
        usage["energy"] = [entry for counter in self._counters for entry in counter.result()]
        if self._gpu is not None:
            usage |= self._gpu.result()
            self._gpu.library.nvmlShutdown()
        return usage
