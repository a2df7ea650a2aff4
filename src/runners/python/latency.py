"""Mode `latency` of the runner contract: all rows once, then timed until it is known well."""

from __future__ import annotations

import argparse
import gc
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from engines import Engine, OpenEngine
from outputs import Outputs
from tensors import full_batches, read_header, rows_of

INTERVAL_WIDTH = 0.02
_Z95 = 1.959964
_GROWTH = 1.25
_PROFILED_RUNS = 10

# Bind, run and copy of one iteration, in nanoseconds.
Step = Callable[[Any], tuple[int, int, int]]


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


def measure(step: Step, batches: list[Any], *, warmup: int, min_runs: int, max_seconds: float) -> dict[str, Any]:
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


def all_rows(engine: Engine, tensors: dict[str, np.ndarray], batch: int | None, folder: Path) -> dict[str, Any]:
    """Run every row once, the last batch perhaps partial, and write the outputs; return where."""
    outputs = Outputs(folder, engine.output_names, engine.output_types)
    rows = None if batch is None else rows_of(tensors)
    if batch is None or rows is None:
        engine.step(tensors)
        outputs.append(engine.results, None)
    else:
        for start in range(0, rows, batch):
            end = min(start + batch, rows)
            engine.step({name: tensor[start:end] for name, tensor in tensors.items()})
            outputs.append(engine.results, end - start)
    outputs.close()
    return {"header": str(folder / "header.json"), "rows": rows}


def peak_memory_bytes() -> int | None:
    """Return the most that this program held; None where the system does not tell.

    Not `ru_maxrss`: that begins with what the process held before it became this program.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    told = next((line.split()[1] for line in lines if line.startswith("VmHWM:")), None)
    return None if told is None else int(told) * 1024


def run_latency(given: argparse.Namespace, open_engine: OpenEngine) -> dict[str, Any]:
    """Run all rows, write the outputs, then measure; return the record's fields."""
    tensors, dtypes, batch = read_header(given.inputs)
    engine = open_engine(given, None)
    engine.check(tensors, dtypes)
    batches = full_batches(tensors, batch)
    engine.step(batches[0])
    first_result_ns = time.monotonic_ns()
    outputs = all_rows(engine, tensors, batch, given.outputs)
    series = measure(engine.step, batches, warmup=given.warmup, min_runs=given.min_runs, max_seconds=given.max_seconds)
    record = {
        **engine.facts,
        **series,
        "session_ns": engine.session_ns,
        "first_result_ns": first_result_ns,
        "outputs": outputs,
        "peak_memory_bytes": peak_memory_bytes(),
    }
    if given.profile:
        profiled = open_engine(given, given.profile)
        record["profile_run_ns"] = [profiled.step(batches[0])[1] for _ in range(_PROFILED_RUNS)]
        record["profile_file"] = profiled.end_profile()
    return record
