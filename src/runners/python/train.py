"""Level `train`: a portable training step, from a state to a state."""

from __future__ import annotations

import gc
import math
import os
import time
from typing import Any

import numpy as np
from engines import BadInput, OpenTrainer, Trainer
from plan import DTYPES, Plan, Role
from result import Result


class _Steps:
    """The micro-batches of a step, and what came of the steps until now."""

    def __init__(self, plan: Plan, trainer: Trainer) -> None:
        self._trainer, self._count = trainer, len([*plan.of(Role.METRIC)])
        self._data, self._hyper = plan.arrays(Role.DATA), plan.arrays(Role.HYPER)
        self._seed = {entry.number: np.array(plan.seed, np.int64) for entry in plan.of(Role.SEED)}
        self._order = next(plan.of(Role.ORDER)).array()
        self._batch = {
            number: np.empty((plan.batch, *array.shape[1:]), array.dtype) for number, array in self._data.items()
        }
        self.metrics: list[list[float]] = []
        self.times: list[list[int]] = []

    def update(self, index: int) -> bool:
        """Do a step; return whether its loss is finite."""
        scalars = {number: np.array(values[index]) for number, values in self._hyper.items()} | self._seed
        rows = self._order[index]
        sums, times = [0.0] * self._count, [0] * 4
        for number, some in enumerate(rows):
            begin = time.monotonic_ns()
            for key, array in self._data.items():
                # Rows are within the data; the other modes of `take` go through a second buffer.
                np.take(array, some, axis=0, out=self._batch[key], mode="clip")
            gather = time.monotonic_ns() - begin
            graph = "step" if number == len(rows) - 1 else "accumulate"
            parts = (gather, *self._trainer.run(graph, self._batch | scalars))
            times = [a + b for a, b in zip(times, parts, strict=True)]
            sums = [a + b for a, b in zip(sums, self._trainer.metrics, strict=False)]
        self.metrics.append([total / len(rows) for total in sums])
        self.times.append(times)
        return math.isfinite(self.metrics[-1][0])


def _write_state(plan: Plan, result: Result, trainer: Trainer, updates: int, slot: int) -> bool:
    """Write a checkpoint, which is on the disk before it is told of; return whether all its numbers are finite."""
    begin = time.monotonic_ns()
    state, path = trainer.state(), result.folder / f"state-{slot}.bin"
    try:
        with path.open("wb") as file:
            for entry in plan.of(Role.STATE):
                array = np.ascontiguousarray(state[entry.number])
                if (array.dtype, array.nbytes) != (DTYPES[entry.dtype], entry.size):
                    what = f"{array.dtype} in {array.nbytes} bytes"
                    raise BadInput(f"state '{entry.name}' is {what}, expected {DTYPES[entry.dtype]} in {entry.size}")
                file.seek(entry.offset)
                file.write(array.data)
            file.truncate(plan.state_bytes)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        # Of a full disk the system does not say which file was written.
        raise OSError(f"{path}: cannot be written: {error.strerror}") from error
    result.say(checkpoint=updates, slot=slot, ns=time.monotonic_ns() - begin)
    return all(bool(np.isfinite(state[entry.number]).all()) for entry in plan.of(Role.STATE))


def run_train(plan: Plan, result: Result, open_trainer: OpenTrainer) -> dict[str, Any]:
    """Train to the end, or to a loss or a checkpoint that is not finite; return the facts."""
    trainer = open_trainer(plan)
    steps = _Steps(plan, trainer)
    gc.collect()
    gc.disable()
    slot, finite = 0, True
    for index in range(plan.steps):
        if not (finite := steps.update(index)):
            break
        updates = plan.first_step + index + 1
        if plan.checkpoint_every and updates % plan.checkpoint_every == 0 and index + 1 < plan.steps:
            if not (finite := _write_state(plan, result, trainer, updates, slot)):
                break
            slot = 1 - slot
    if finite:
        _write_state(plan, result, trainer, plan.first_step + plan.steps, slot)
    gc.enable()
    result.keep_process()
    result.write("times", steps.times)
    result.write("metrics", steps.metrics, "<f8")
    return trainer.facts
