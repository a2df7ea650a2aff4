"""ONNX Runtime from Python with I/O binding, under the runner contract."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from typing import Any

import numpy as np
from contract import run_program
from session import Session, bits_of
from train import run_train
from trainers import BoundTrainer


class Bound(Session):
    """A session whose inputs and outputs are bound, so that copies stand apart from `Run`."""

    def __init__(self, given: argparse.Namespace, profile: str | None) -> None:
        super().__init__(given, profile)
        self._binding = self.session.io_binding()
        self._half = {n for n, kind in self.output_types.items() if kind == "tensor(bfloat16)"}

    def _bind(self, name: str, array: np.ndarray) -> None:
        if array.dtype.kind in "biuf" and name not in self._bits:
            self._binding.bind_cpu_input(name, array)
        else:
            self._binding.bind_ortvalue_input(name, self.ort_values({name: array})[name])

    def step(self, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Bind, run, copy the outputs into host memory."""
        clock, binding = time.monotonic_ns, self._binding
        # What the last run gave is given back here, not in the time of this one.
        self.results = []
        t0 = clock()
        for name, array in feed.items():
            self._bind(name, array)
        for name in self.output_names:
            # Bound anew each time: a bound output keeps the tensor of the last run.
            binding.bind_output(name, "cuda" if self.on_gpu else "cpu")
        t1 = clock()
        self.session.run_with_iobinding(binding)
        if self.on_gpu:
            binding.synchronize_outputs()
        t2 = clock()
        if self._half:
            found = zip(self.output_names, binding.get_outputs(), strict=True)
            self.results = [bits_of(v) if n in self._half else v.numpy() for n, v in found]
        else:
            self.results = binding.copy_outputs_to_cpu()
        t3 = clock()
        binding.clear_binding_inputs()
        binding.clear_binding_outputs()
        return t1 - t0, t2 - t1, t3 - t2


def open_engine(given: argparse.Namespace, profile: str | None) -> Any:
    """Make a session."""
    return Bound(given, profile)


if __name__ == "__main__":
    sys.exit(
        run_program(
            "python-iobinding",
            open_engine,
            modes=("latency", "load", "cases"),
            train=partial(run_train, open_trainer=BoundTrainer),
        )
    )
