"""Mode `train` of the runner contract: a portable training step, from a state to a state."""

from __future__ import annotations

import argparse
import gc
import math
import time
from typing import Any

import numpy as np
from engines import CannotWrite, Diverged, OpenTrainer, Trainer
from latency import peak_memory_bytes
from state_file import NotFinite, read_state, remove_left, require_finite, write_state
from step_folder import Schedule, Step, read_data, read_order, read_step
from tensors import BadInput

_WHY_NOT_FINITE = "the rate is too high, or the target has a class that the model does not"
_TIMES = ("gather_ns", "bind_ns", "run_ns", "read_ns")


class _Training:
    """The steps from the state's own to `--until`, and the record's fields of them."""

    def __init__(self, given: argparse.Namespace, step: Step, trainer: Trainer, first: int) -> None:
        self._given, self._step, self._trainer = given, step, trainer
        self._metrics: list[list[float]] = [[] for _ in step.metrics]
        self._times: list[list[int]] = [[] for _ in _TIMES]
        self._checkpoints: list[dict[str, int]] = []
        self._first = first

    def run(self, data: dict[str, np.ndarray], order: np.ndarray, schedule: Schedule) -> None:
        """Go on to the end. Raises Diverged at the first number that is not finite."""
        batch = {name: np.empty((self._given.batch, *array.shape[1:]), array.dtype) for name, array in data.items()}
        seed = {self._step.seed: np.array(self._given.seed, np.int64)} if self._step.seed else {}
        written = -1
        for index in range(self._first, self._given.until):
            self._update(index, data, batch, order[index], schedule.at(index) | seed)
            if self._given.checkpoint_every and (index + 1) % self._given.checkpoint_every == 0:
                self._write_checkpoint(index)
                written = index + 1
        if written != self._given.until:
            self._write_checkpoint(self._given.until - 1)

    def _update(
        self,
        index: int,
        data: dict[str, np.ndarray],
        batch: dict[str, np.ndarray],
        rows: np.ndarray,
        scalars: dict[str, np.ndarray],
    ) -> None:
        """Run the micro-batches of one step."""
        sums, times = [0.0] * len(self._metrics), [0] * len(_TIMES)
        for number, some in enumerate(rows):
            begin = time.monotonic_ns()
            for name, array in data.items():
                # Rows are within the data; the other modes of `take` go through a second buffer.
                np.take(array, some, axis=0, out=batch[name], mode="clip")
            gather = time.monotonic_ns() - begin
            graph = "step" if number == len(rows) - 1 else "accumulate"
            parts = (gather, *self._trainer.run(graph, batch | scalars))
            times = [a + b for a, b in zip(times, parts, strict=True)]
            sums = [a + b for a, b in zip(sums, self._trainer.metrics, strict=True)]
        means = [total / len(rows) for total in sums]
        if not math.isfinite(means[0]):
            raise Diverged(f"diverged: the loss of step {index} is {means[0]}: {_WHY_NOT_FINITE}", self.fields())
        for series, mean in zip(self._metrics, means, strict=True):
            series.append(mean)
        for times_ns, part in zip(self._times, times, strict=True):
            times_ns.append(part)

    def _write_checkpoint(self, index: int) -> None:
        begin = time.monotonic_ns()
        state = self._trainer.state()
        try:
            require_finite(state, self._step)
        except NotFinite as error:
            # That step is not one of those that went well.
            for series in (*self._metrics, *self._times):
                del series[-1:]
            raise Diverged(f"diverged: after step {index} {error}", self.fields()) from error
        try:
            write_state(self._given.checkpoint, self._step, state)
        except OSError as error:
            # Of a full disk the system does not say which file was written.
            file = f"--checkpoint {self._given.checkpoint}: cannot be written"
            raise CannotWrite(f"{file}: {error.strerror}") from error
        end = time.monotonic_ns()
        self._checkpoints.append({"step": index + 1, "ns": end - begin})

    def fields(self) -> dict[str, Any]:
        """Return what the record has of the steps until now."""
        # JSON has no number that is none: of the metrics only the loss is known to be finite.
        metrics = [[x if math.isfinite(x) else None for x in series] for series in self._metrics]
        return {
            **self._trainer.facts,
            "session_ns": self._trainer.session_ns,
            "peak_memory_bytes": peak_memory_bytes(),
            "step_graph": self._step.step_graph,
            "first_step": self._first,
            "losses": metrics[0],
            "metrics": dict(zip([*self._step.metrics][1:], metrics[1:], strict=True)),
            **dict(zip(_TIMES, self._times, strict=True)),
            "checkpoints": self._checkpoints,
            "state": str(self._given.checkpoint),
        }


def run_train(given: argparse.Namespace, open_trainer: OpenTrainer) -> dict[str, Any]:
    """Train from the checkpoint, or the state to begin with; return the record's fields."""
    step = read_step(given.step, given.accumulate > 1)
    schedule = Schedule(given.schedule, step, given.until)
    data = read_data(given.inputs, step)
    order = read_order(given, len(next(iter(data.values()))))
    begun = given.checkpoint.exists()
    source = given.checkpoint if begun else given.state or step.state_file
    state = read_state(source, step)
    first = int(state[step.counter])
    if not 0 <= first <= given.until:
        raise BadInput(f"{source}: is of step {first}, expected one from 0 to --until {given.until}")
    remove_left(given.checkpoint)
    trainer = open_trainer(given, step)
    trainer.start(state)
    training = _Training(given, step, trainer, first)
    gc.collect()
    gc.disable()
    training.run(data, order, schedule)
    gc.enable()
    return training.fields()
