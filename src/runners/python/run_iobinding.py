"""ONNX Runtime from Python with I/O binding, under the runner contract."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from main import run_program
from plan import DTYPES, Plan, Role
from session import Session, Sessions, bits_of


class Bound(Session):
    """A session whose inputs and outputs are bound, so that copies stand apart from `Run`."""

    def __init__(self, plan: Plan, model: str, profile: str) -> None:
        super().__init__(plan, model, profile)
        self._binding = self.session.io_binding()
        self._half = self.bfloat16.intersection(self.output_names)

    def _bind(self, name: str, array: np.ndarray) -> None:
        if array.dtype.kind in "biuf" and name not in self.bfloat16:
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


class BoundTrainer(Sessions):
    """I/O binding: two sets of buffers on the device, of which one step's results are the next's.

    Each graph has a binding for each way in which the buffers may lie, made when it first comes.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._on_gpu = self._sessions["step"].on_gpu
        options = {entry.name: entry.text for entry in plan.of(Role.PROVIDER_OPTION)}
        device = ("cuda" if self._on_gpu else "cpu", int(options.get("device_id", 0)))
        # How often each graph has run, modulo 2: where the buffers lie follows from it.
        self._turns = dict.fromkeys(self._graphs, 0)
        self._bindings: dict[tuple[Any, ...], Any] = {}
        # Of each metric a scalar in host memory, over which ONNX Runtime's value lies.
        self._scalars = {metric.number: np.zeros((), DTYPES[metric.dtype]) for metric in self._metrics}
        self._buffers: dict[int, list[Any]] = {}
        self._place: dict[int, int] = {}
        self._take(plan, device)

    def _take(self, plan: Plan, device: tuple[str, int]) -> None:
        """Take the state to the device; what no step changes has one buffer."""
        from onnxruntime import OrtValue

        made = {link for nexts in self._nexts.values() for link in nexts}
        for entry in plan.of(Role.STATE):
            self._buffers[entry.number] = [OrtValue.ortvalue_from_numpy(entry.array(), *device)]
            self._place[entry.number] = 0
            if entry.number in made:
                kind = np.dtype(DTYPES[entry.dtype]).type
                self._buffers[entry.number].append(
                    OrtValue.ortvalue_from_shape_and_type(list(entry.shape), kind, *device)
                )

    def _binding(self, name: str) -> Any:
        """Return the graph's binding with the state's buffers as they lie now."""
        graph, key = self._graphs[name], (name, *self._turns.values())
        if key in self._bindings:
            return self._bindings[key]
        binding = self._sessions[name].session.io_binding()
        for taken, link in graph.takes.items():
            if link in self._buffers:
                binding.bind_ortvalue_input(taken, self._buffers[link][self._place[link]])
        for given, link in graph.gives.items():
            if link in self._buffers:
                binding.bind_ortvalue_output(given, self._buffers[link][1 - self._place[link]])
            else:
                array = self._scalars[link]
                binding.bind_output(given, "cpu", 0, array.dtype, (), array.ctypes.data)
        self._bindings[key] = binding
        return binding

    def run(self, name: str, feed: dict[int, np.ndarray]) -> tuple[int, int, int]:
        """Bind data and scalars, run; the buffers change places."""
        clock = time.monotonic_ns
        t0 = clock()
        binding = self._binding(name)
        for taken, link in self._graphs[name].takes.items():
            if link in feed:
                binding.bind_cpu_input(taken, feed[link])
        t1 = clock()
        self._sessions[name].session.run_with_iobinding(binding)
        if self._on_gpu:
            binding.synchronize_outputs()
        t2 = clock()
        self._turns[name] ^= 1
        for changed in self._nexts[name]:
            self._place[changed] ^= 1
        self.metrics = [float(self._scalars[metric.number]) for metric in self._metrics]
        return t1 - t0, t2 - t1, clock() - t2

    def state(self) -> dict[int, np.ndarray]:
        """Return a copy of the state in host memory."""
        return {number: buffers[self._place[number]].numpy() for number, buffers in self._buffers.items()}


if __name__ == "__main__":
    sys.exit(run_program("python-iobinding", Bound, BoundTrainer))
