"""ONNX Runtime from Python, `session.run`, under the runner contract (docs/runner-contract.md)."""

from __future__ import annotations

import sys
import time

import numpy as np
from main import run_program
from plan import Plan, Role
from session import Session, Sessions, bits_of


class Plain(Session):
    """A session that is called as most people call it: arrays in, arrays out."""

    def __init__(self, plan: Plan, model: str, profile: str) -> None:
        super().__init__(plan, model, profile)
        self.facts["run_includes"] = ["bind", "copy"]

    def step(self, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Run; inputs and outputs are converted inside of the call."""
        # Arrays hold everything but bfloat16, which only ONNX Runtime's own values carry.
        if self.bfloat16:
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


class PlainTrainer(Sessions):
    """`session.run` with arrays: the state comes out and is given in again, as most would do it."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.facts["run_includes"] = ["bind", "read"]
        self._state = plan.arrays(Role.STATE)

    def run(self, name: str, feed: dict[int, np.ndarray]) -> tuple[int, int, int]:
        """Run a graph; all that there is besides is done inside of the call."""
        graph, session, outputs = self._graphs[name], self._sessions[name].session, [*self._graphs[name].gives]
        begin = time.monotonic_ns()
        given = {key: feed[link] if link in feed else self._state[link] for key, link in graph.takes.items()}
        found = dict(zip(outputs, session.run(outputs, given), strict=True))
        self._state |= {link: found[following] for link, following in self._nexts[name].items()}
        self.metrics = [float(found[metric.name]) for metric in self._metrics]
        return 0, time.monotonic_ns() - begin, 0

    def state(self) -> dict[int, np.ndarray]:
        """Return the state."""
        return self._state


if __name__ == "__main__":
    sys.exit(run_program("python", Plain, PlainTrainer))
