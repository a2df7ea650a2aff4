"""What is measured of a process: CPU time, a GPU through NVML, counters of energy."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from transect.measure import usage
from transect.measure.usage import EnergyCounter, Usage, find_gpu, nvml_counter, rapl_counters

LIMIT = 262_143_328_850
ZONES = {
    "intel-rapl:0": "package-0",
    "intel-rapl:0:0": "core",
    "intel-rapl:0:1": "dram",
    "intel-rapl:1": "package-1-die-0",
    "intel-rapl:2": "psys",
    "intel-rapl-mmio:0": "package-0",
    "dtpm": "",
}


@pytest.fixture
def powercap(tmp_path: Path) -> Path:
    """A kernel's tree of two packages, one memory, and zones that would count twice."""
    for zone, name in ZONES.items():
        folder = tmp_path / zone
        folder.mkdir()
        if name:
            (folder / "name").write_text(f"{name}\n")
            (folder / "max_energy_range_uj").write_text(f"{LIMIT}\n")
            (folder / "energy_uj").write_text("1000000\n")
    return tmp_path


class NvmlError(Exception):
    pass


class Nvml:
    """Two GPUs; the counter of each rises by 5 J at each reading."""

    def __init__(self, names: tuple[str, ...] = ("A", "A")) -> None:
        self.names = names
        self.joules = [100.0] * len(names)
        self.sampled = threading.Event()
        self.open = 0
        self.samples = 0
        self.tells_energy = True

    def nvmlInit(self):
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetCount(self):
        return len(self.names)

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetName(self, handle):
        return self.names[handle]

    def nvmlDeviceGetUUID(self, handle):
        return f"GPU-{'ab'[handle]}0000000-1111"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        if not self.tells_energy:
            raise NvmlError("not supported")
        self.joules[handle] += 5.0
        return int(self.joules[handle] * 1000)

    def nvmlDeviceGetUtilizationRates(self, handle):
        self.samples += 1
        return SimpleNamespace(gpu=40 if self.samples % 2 else 60)

    def nvmlDeviceGetMemoryInfo(self, handle):
        if self.samples == 4:
            self.sampled.set()
        return SimpleNamespace(used=1000 * (handle + 1))


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    fake = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    return fake


def test_packages_and_their_memory_are_counted_once_each(powercap):
    counters = rapl_counters(powercap)
    assert [counter.source for counter in counters] == ["rapl:package-0", "rapl:package-0:dram", "rapl:package-1-die-0"]
    (powercap / "intel-rapl:0/energy_uj").write_text("3500000\n")
    for counter in counters:
        counter.read()
    joules = {entry["source"]: entry["joules"] for counter in counters for entry in counter.result()}
    assert joules == pytest.approx({"rapl:package-0": 2.5, "rapl:package-0:dram": 0.0, "rapl:package-1-die-0": 0.0})


def test_a_counter_that_starts_anew_twice_is_added_up():
    readings = iter([90, 10, 95, 5])
    counter = EnergyCounter("x", lambda: next(readings), 0.5, limit=100)
    for _ in range(3):
        counter.read()
    [entry] = counter.result()
    assert entry["joules"] == 0.5 * (20 + 85 + 10)
    assert entry["method"] == "counter"
    assert entry["seconds"] > 0


def test_a_counter_that_goes_back_or_away_gives_no_number():
    backwards = iter([90, 10])
    reloaded = EnergyCounter("x", lambda: next(backwards), 1.0)
    reloaded.read()
    assert reloaded.result() == []
    reloaded.read()  # it has ended
    assert reloaded.result() == []


def test_a_zone_that_cannot_be_read_is_absent(powercap):
    (powercap / "intel-rapl:0/energy_uj").write_text("")
    (powercap / "intel-rapl:1/max_energy_range_uj").unlink()
    assert [counter.source for counter in rapl_counters(powercap)] == ["rapl:package-0:dram"]
    assert rapl_counters(powercap / "nothing") == []


def test_rapl_is_read_once_per_node(powercap):
    entries = [Usage("cpu", rank, powercap).stop()["energy"] for rank in (0, 1)]
    assert [len(found) for found in entries] == [3, 0]


def test_rapl_is_read_on_the_way(powercap, monkeypatch):
    monkeypatch.setattr(usage, "READING_PERIOD_S", 0.001)
    readings: list[float] = []
    enough = threading.Event()
    read = EnergyCounter.read

    def noting(counter):
        readings.append(time.perf_counter())
        if len(readings) > 9:
            enough.set()
        read(counter)

    monkeypatch.setattr(EnergyCounter, "read", noting)
    watch = Usage("cpu", 0, powercap)
    assert enough.wait(600)
    watch.stop()


def test_the_time_is_that_of_all_threads(tmp_path):
    watch = Usage("cpu", 0, tmp_path)
    before = time.process_time()
    thread = threading.Thread(target=lambda: sum(range(2_000_000)))
    thread.start()
    thread.join()
    used = time.process_time() - before
    found = watch.stop()
    assert found["cpu_s"] >= used
    assert found["cpu_utilisation"] == found["cpu_s"] / found["wall_s"]
    assert found["energy"] == []
    assert set(found) == {"wall_s", "cpu_s", "cpu_utilisation", "energy"}
    assert "usage" not in [thread.name for thread in threading.enumerate()]


def test_a_gpu_is_sampled_and_its_counter_read(nvml, tmp_path, monkeypatch):
    monkeypatch.setattr(usage, "GPU_PERIOD_S", 0.001)
    watch = Usage("cuda", 1, tmp_path)
    assert nvml.sampled.wait(600)
    found = watch.stop()
    assert found["gpu_index"] == 1
    assert found["gpu_samples"] >= 3
    assert 0.4 <= found["gpu_utilisation_mean"] < found["gpu_utilisation_max"] == 0.6
    assert found["gpu_memory_max_bytes"] == found["gpu_memory_mean_bytes"] == 2000
    [entry] = found["energy"]
    assert (entry["source"], entry["joules"]) == ("nvml:1", 5.0)
    assert nvml.open == 0


def test_a_gpu_without_a_counter_gives_no_energy(nvml):
    nvml.tells_energy = False
    assert nvml_counter(nvml, 0, 0) == []


@pytest.mark.parametrize(
    ("visible", "local_rank", "index"),
    [
        (None, 2, 0),
        ("1", 3, 1),
        ("1,0", 1, 0),
        ("GPU-b0", 0, 1),
        ("GPU-b0000000-1111, GPU-a", 1, 0),
        ("GPU-", 0, None),
        ("GPU-c", 0, None),
        ("", 0, None),
        ("7", 0, None),
        ("NoDevFiles", 0, None),
    ],
)
def test_the_rank_finds_its_gpu(nvml, visible, local_rank, index):
    found = find_gpu(local_rank, {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    assert (found.index if found else None) == index


def test_numbers_of_different_gpus_mean_something_only_in_the_order_of_the_bus(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(("A", "B")))
    assert find_gpu(1, {}) is None
    found = find_gpu(1, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert found is not None and found.index == 1


def test_a_driver_that_is_not_there_is_no_error(nvml, monkeypatch, tmp_path):
    def fails():
        raise NvmlError("driver not loaded")

    monkeypatch.setattr(nvml, "nvmlInit", fails)
    found = Usage("cuda", 0, tmp_path).stop()
    assert found["energy"] == []
    assert "gpu_index" not in found
