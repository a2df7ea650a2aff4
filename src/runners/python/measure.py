"""Levels `latency` and `cases`: all rows once, then timed until it is known well; many models, once each."""

from __future__ import annotations

import gc
import math
import time
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from engines import Engine, OpenEngine, Skip, Unsupported
from plan import Plan, Role
from result import Outputs, Result
from stopping import interval_is_narrow
from turns import Turns

_GROWTH = 1.25
_PROFILED_RUNS = 10

# Bind, run and copy of one iteration, in nanoseconds.
Step = Callable[[Any], tuple[int, int, int]]


def warm_up(step: Step, batches: list[Any], plan: Plan) -> None:
    """Run as often as the plan says; the times are thrown away."""
    for index in range(plan.warmup):
        step(batches[index % len(batches)])


def measure(step: Step, batches: list[Any], plan: Plan, turns: Turns | None) -> tuple[array[int], str]:
    """Time iterations; return the three times of each in a row, and why it stopped."""
    times = array("q")
    gc.collect()
    gc.disable()
    if turns is None:
        stop = _until_narrow(step, batches, plan, times)
    else:
        # Nothing is timed while it waits.
        stop, said = "turns", b"r"
        while count := turns.next(said):
            said = b"d"
            for _ in range(count):
                times.extend(step(batches[len(times) // 3 % len(batches)]))
    gc.enable()
    return times, stop


def _until_narrow(step: Step, batches: list[Any], plan: Plan, times: array[int]) -> str:
    """Time until the interval is narrow or the time is up; return which.

    The interval is looked at after `min_runs` iterations and then each time their number has
    grown by a quarter, so sorting costs little. `max_ns` is the wall time since the first
    timed iteration, checks included; it ends nothing before `min_runs`.
    """
    next_check, deadline = plan.min_runs, time.monotonic_ns() + plan.max_ns
    while True:
        times.extend(step(batches[len(times) // 3 % len(batches)]))
        if (done := len(times) // 3) < plan.min_runs:
            continue
        if done >= next_check:
            next_check = math.ceil(done * _GROWTH)
            if interval_is_narrow(times[1::3]):
                return "interval-reached"
        if time.monotonic_ns() >= deadline:
            return "time-limit"


def full_batches(tensors: dict[str, np.ndarray], plan: Plan) -> list[dict[str, np.ndarray]]:
    """Cut the rows into full batches, the rest is left out; without a batch: one, of all."""
    batch = plan.batch
    if not batch:
        return [tensors]
    return [
        {name: tensor[start : start + batch] for name, tensor in tensors.items()}
        for start in range(0, plan.rows - batch + 1, batch)
    ]


def all_rows(engine: Engine, tensors: dict[str, np.ndarray], plan: Plan) -> dict[str, Any]:
    """Run the first batch, then every row, the last batch perhaps partial, and write the outputs.

    Return the facts of it.
    """
    engine.step(full_batches(tensors, plan)[0])
    first_result_ns = time.monotonic_ns()
    outputs = Outputs(plan)
    if not plan.batch:
        engine.step(tensors)
        outputs.append(engine.results)
    for start in range(0, plan.rows, plan.batch or 1):
        end = min(start + plan.batch, plan.rows)
        engine.step({name: tensor[start:end] for name, tensor in tensors.items()})
        outputs.append(engine.results, end - start)
    return {"first_result_ns": first_result_ns, "outputs": outputs.told}


def run_latency(plan: Plan, result: Result, open_engine: OpenEngine) -> dict[str, Any]:
    """Run all rows, write the outputs, then measure; return the facts."""
    turns, tensors, model = Turns.join(), plan.inputs(), plan.text(Role.MODEL)
    engine = open_engine(plan, model, "")
    facts = engine.facts | all_rows(engine, tensors, plan)
    batches = full_batches(tensors, plan)
    warm_up(engine.step, batches, plan)
    times, facts["stop_reason"] = measure(engine.step, batches, plan, turns)
    # The most that the process held is that of the measurement, not of what is made of it here.
    result.keep_process()
    result.write("times", times)
    # Only ONNX Runtime has its profiler.
    if (prefix := plan.text(Role.PROFILE)) and hasattr(engine, "end_profile"):
        profiled: Any = open_engine(plan, model, prefix)
        result.write("profile_times", [profiled.step(batches[0])[1] for _ in range(_PROFILED_RUNS)])
        facts["profile_file"] = profiled.end_profile()
    return facts


def run_cases(plan: Plan, result: Result, open_engine: OpenEngine) -> dict[str, Any]:
    """Run each model once; say before it that it comes, and after it what came of it."""
    for model in plan.of(Role.MODEL):
        result.say(case=model.group, status="started")
        told: dict[str, Any]
        try:
            engine = open_engine(plan, model.text, "")
            engine.step(plan.inputs(model.group))
            outputs = Outputs(plan, model.group)
            outputs.append(engine.results)
            told = {"status": "ok", "outputs": outputs.told}
        except Skip:
            raise
        except Unsupported as error:
            told = {"status": "unsupported", "message": str(error)}
        except Exception as error:
            told = {"status": "failed", "message": f"{type(error).__name__}: {error}"}
        result.say(case=model.group, **told)
    return {}
