"""ONNX Runtime from Python, `session.run`, under the runner contract (docs/runner-contract.md)."""

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
from trainers import PlainTrainer


class Plain(Session):
    """A session that is called as most people call it: arrays in, arrays out."""

    def __init__(self, given: argparse.Namespace, profile: str | None) -> None:
        super().__init__(given, profile)
        self.facts["run_includes"] = ["bind", "copy"]
        # Arrays hold everything but bfloat16, which only ONNX Runtime's own values carry.
        self._values = self.has_bfloat16()

    def step(self, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Run; inputs and outputs are converted inside of the call."""
        if self._values:
            return self._step_values(feed)
        # What the last run gave is given back here, not in the time of this one.
        self.results = []
        t0 = time.monotonic_ns()
        self.results = self.session.run(self.output_names, feed)
        return 0, time.monotonic_ns() - t0, 0

    def _step_values(self, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        clock = time.monotonic_ns
        self.results = []
        t0 = clock()
        values = self.ort_values(feed)
        t1 = clock()
        found = self.session.run_with_ort_values(self.output_names, values)
        t2 = clock()
        self.results = [bits_of(value) if value.data_type() == "tensor(bfloat16)" else value.numpy() for value in found]
        return t1 - t0, t2 - t1, clock() - t2


def open_engine(given: argparse.Namespace, profile: str | None) -> Any:
    """Make a session."""
    return Plain(given, profile)


if __name__ == "__main__":
    sys.exit(
        run_program(
            "python",
            open_engine,
            modes=("latency", "load", "cases"),
            train=partial(run_train, open_trainer=PlainTrainer),
        )
    )
