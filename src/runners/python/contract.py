"""The runner contract for runners in Python: see docs/runner-contract.md.

Shared by `python/run.py` and `torch-eager/run.py`; needs numpy and nothing of transect.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "BadInput",
    "Skip",
    "cuda_devices",
    "full_batches",
    "interval_is_narrow",
    "measure",
    "read_inputs",
    "run_program",
    "write_outputs",
]

CRASH, BAD_INPUT, SKIPPED = 1, 2, 3
INTERVAL_WIDTH = 0.02
_Z95 = 1.959964
_GROWTH = 1.25

# Bind, run and copy of one iteration, in nanoseconds.
Step = Callable[[Any], tuple[int, int, int]]


class BadInput(ValueError):
    """What was given cannot be used; exit code 2."""


class Skip(Exception):
    """The provider is not there; exit code 3. Never answered by falling back."""


def cuda_devices() -> int:
    """Count the CUDA devices that the driver shows; 0 without a driver. Needs no framework."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def read_inputs(folder: Path) -> tuple[dict[str, np.ndarray], int]:
    """Return the float32 tensors (N, ...) of `folder/header.json` by name, and the batch."""
    header = folder / "header.json"
    try:
        described = json.loads(header.read_text())
        entries, batch = described["tensors"], int(described["batch"])
        tensors = {entry["name"]: _read_tensor(folder, entry) for entry in entries}
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{header}: {type(error).__name__}: {error}") from error
    rows = {len(tensor) for tensor in tensors.values()}
    if len(rows) != 1 or not 1 <= batch <= min(rows):
        raise BadInput(f"{header}: needs N >= batch >= 1 rows in every tensor, got {rows}, {batch}")
    return tensors, batch


def _read_tensor(folder: Path, entry: dict[str, Any]) -> np.ndarray:
    if entry["dtype"] != "float32":
        raise BadInput(f"tensor '{entry['name']}' is {entry['dtype']}, expected float32")
    raw = np.fromfile(folder / entry["file"], dtype="<f4")
    return raw.reshape(entry["shape"])


def full_batches(tensors: dict[str, np.ndarray], batch: int) -> list[dict[str, np.ndarray]]:
    """Cut the rows into full batches; the rest is left out."""
    rows = len(next(iter(tensors.values())))
    return [
        {name: tensor[start : start + batch] for name, tensor in tensors.items()}
        for start in range(0, rows - batch + 1, batch)
    ]


def write_outputs(folder: Path, name: str, parts: list[np.ndarray]) -> dict[str, Any]:
    """Write all rows of the one output as `output.bin` with its header; return where."""
    whole = np.ascontiguousarray(np.concatenate(parts), dtype="<f4")
    folder.mkdir(parents=True, exist_ok=True)
    whole.tofile(folder / "output.bin")
    entry = {"name": name, "dtype": "float32", "shape": list(whole.shape), "file": "output.bin"}
    (folder / "header.json").write_text(json.dumps({"tensors": [entry]}) + "\n")
    return {"header": str(folder / "header.json"), "rows": len(whole)}


def interval_is_narrow(values: list[int], width: float = INTERVAL_WIDTH) -> bool:
    """Tell whether the 95 % interval of the median is at most `width` of the median wide.

    Rank-based, no assumption on the distribution: J.-Y. Le Boudec, "Performance Evaluation of
    Computer and Communication Systems", 2010, theorem 2.1, normal approximation of the ranks.
    """
    n = len(values)
    low = math.floor(0.5 * n - 0.5 * _Z95 * math.sqrt(n))
    high = math.ceil(0.5 * n + 1 + 0.5 * _Z95 * math.sqrt(n))
    if low < 1 or high > n:
        return False
    ordered = sorted(values)
    median = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
    return ordered[high - 1] - ordered[low - 1] <= width * median


def measure(
    step: Step, batches: list[Any], *, warmup: int, min_runs: int, max_seconds: float
) -> dict[str, Any]:
    """Warm up, then time until the interval is narrow or the time is up.

    The interval is looked at after `min_runs` iterations and then each time their number has
    grown by a quarter, so sorting costs little. `max_seconds` is the wall time since the first
    timed iteration, checks included; it ends nothing before `min_runs`.
    """
    for index in range(warmup):
        step(batches[index % len(batches)])
    bind, run, copy = [], [], []
    next_check, stop = min_runs, ""
    gc.collect()
    gc.disable()
    deadline = time.monotonic_ns() + int(max_seconds * 1e9)
    while not stop:
        times = step(batches[len(run) % len(batches)])
        bind.append(times[0])
        run.append(times[1])
        copy.append(times[2])
        if len(run) < min_runs:
            continue
        if len(run) >= next_check:
            next_check = math.ceil(len(run) * _GROWTH)
            if interval_is_narrow(run):
                stop = "interval-reached"
        if not stop and time.monotonic_ns() >= deadline:
            stop = "time-limit"
    gc.enable()
    return {"bind_ns": bind, "run_ns": run, "copy_ns": copy, "stop_reason": stop}


def _arguments(text: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--inputs", type=Path, required=True, help="folder with header.json")
    parser.add_argument("--outputs", type=Path, required=True, help="folder to write")
    parser.add_argument("--provider", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--threads", type=_positive, required=True)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--min-runs", type=_positive, default=100)
    parser.add_argument("--max-seconds", type=float, default=1.0)
    parser.add_argument("--record", type=Path, required=True)
    return parser.parse_args()


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {value}")
    return value


def run_program(
    name: str, text: str | None, run: Callable[[argparse.Namespace], dict[str, Any]]
) -> int:
    """Parse the contract's arguments, run, write the record; return the exit code."""
    given = _arguments(text)
    head = {"runner": name, "provider_requested": given.provider}
    try:
        if given.provider == "cuda" and cuda_devices() == 0:
            raise Skip("no CUDA device")
        record, code = head | {"status": "ok"} | run(given), 0
    except Skip as skip:
        record, code = head | {"status": "skipped", "reason": str(skip)}, SKIPPED
    except Exception as error:
        traceback.print_exc()
        cause, code = _cause(error)
        message = f"{type(error).__name__}: {error}"
        record = head | {"status": "failed", "cause": cause, "message": message}
    given.record.parent.mkdir(parents=True, exist_ok=True)
    temporary = given.record.with_name(f".{given.record.name}.{os.getpid()}")
    temporary.write_text(json.dumps(record) + "\n")
    temporary.replace(given.record)
    sys.stdout.flush()
    return code


def _cause(error: Exception) -> tuple[str, int]:
    if isinstance(error, BadInput):
        return "bad-input", BAD_INPUT
    if isinstance(error, ImportError):
        return "missing-dependency", CRASH
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "out-of-memory", CRASH
    return "crash", CRASH
