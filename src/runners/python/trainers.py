"""The sessions of a portable training step: with arrays, and with bound values of ONNX Runtime."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from engines import Unsupported
from session import Session
from step_folder import Graph, Step
from tensors import DTYPES, BadInput


class _Sessions:
    """A session for each graph, with the names that the manifest says."""

    def __init__(self, given: argparse.Namespace, step: Step) -> None:
        tensors = [*((t.name, t.dtype) for t in step.state), *((name, dtype) for name, (dtype, _) in step.data.items())]
        for name, dtype in tensors:
            if dtype in ("bfloat16", "string"):
                raise Unsupported(f"'{name}': Python trains with no tensors of {dtype}")
        self._step = step
        self._sessions = {name: _open(given, graph) for name, graph in step.graphs.items()}
        self._nexts = {
            name: {t.name: t.next for t in step.state if t.next in graph.outputs} for name, graph in step.graphs.items()
        }
        self.facts: dict[str, Any] = self._sessions["step"].facts
        self.session_ns = sum(session.session_ns for session in self._sessions.values())
        self.metrics: list[float] = []


def _open(given: argparse.Namespace, graph: Graph) -> Session:
    session = Session(argparse.Namespace(**vars(given) | {"model": graph.file}), None)
    takes = sorted(value.name for value in session.session.get_inputs())
    if takes != sorted(graph.inputs) or sorted(session.output_names) != sorted(graph.outputs):
        raise BadInput(
            f"{graph.file}: takes {takes} and gives {session.output_names}; the manifest says "
            f"{graph.inputs} and {graph.outputs}"
        )
    return session


class PlainTrainer(_Sessions):
    """`session.run` with arrays: the state comes out and is given in again, as most would do it."""

    def __init__(self, given: argparse.Namespace, step: Step) -> None:
        super().__init__(given, step)
        self.facts["run_includes"] = ["bind", "read"]
        self._state: dict[str, np.ndarray] = {}

    def start(self, state: dict[str, np.ndarray]) -> None:
        """Begin with this state."""
        self._state = dict(state)

    def run(self, name: str, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Run a graph; all that there is besides is done inside of the call."""
        graph, session = self._step.graphs[name], self._sessions[name].session
        begin = time.monotonic_ns()
        given = {key: feed[key] if key in feed else self._state[key] for key in graph.inputs}
        found = dict(zip(graph.outputs, session.run(graph.outputs, given), strict=True))
        self._state |= {key: found[following] for key, following in self._nexts[name].items()}
        self.metrics = [float(found[key]) for key in self._step.metrics]
        return 0, time.monotonic_ns() - begin, 0

    def state(self) -> dict[str, np.ndarray]:
        """Return the state."""
        return self._state


class BoundTrainer(_Sessions):
    """I/O binding: two sets of buffers on the device, of which one step's results are the next's.

    Each graph has a binding for each way in which the buffers may lie, made when it first comes.
    """

    def __init__(self, given: argparse.Namespace, step: Step) -> None:
        super().__init__(given, step)
        self._on_gpu = self._sessions["step"].on_gpu
        options = self._sessions["step"].facts["session_options"].get("provider_options", {})
        self._device = ("cuda" if self._on_gpu else "cpu", int(options.get("device_id", 0)))
        self._buffers: dict[str, list[Any]] = {}
        self._place = {tensor.name: 0 for tensor in step.state}
        # How often each graph has run, modulo 2: where the buffers lie follows from it.
        self._turns = dict.fromkeys(step.graphs, 0)
        self._bindings: dict[tuple[Any, ...], Any] = {}
        # Of each metric a scalar in host memory, over which ONNX Runtime's value lies.
        self._scalars = {name: np.zeros((), dtype) for name, dtype in step.metrics.items()}

    def start(self, state: dict[str, np.ndarray]) -> None:
        """Take the state to the device; what no step changes has one buffer."""
        from onnxruntime import OrtValue

        made = {name for nexts in self._nexts.values() for name in nexts}
        for tensor in self._step.state:
            value = OrtValue.ortvalue_from_numpy(state[tensor.name], *self._device)
            self._buffers[tensor.name] = [value]
            if tensor.name in made:
                empty = OrtValue.ortvalue_from_shape_and_type(
                    list(tensor.shape), np.dtype(DTYPES[tensor.dtype]).type, *self._device
                )
                self._buffers[tensor.name].append(empty)

    def _binding(self, name: str) -> Any:
        """Return the graph's binding with the state's buffers as they lie now."""
        graph, nexts = self._step.graphs[name], self._nexts[name]
        key = (name, *self._turns.values())
        if key in self._bindings:
            return self._bindings[key]
        binding = self._sessions[name].session.io_binding()
        for tensor in self._step.state:
            here = self._place[tensor.name]
            if tensor.name in graph.inputs:
                binding.bind_ortvalue_input(tensor.name, self._buffers[tensor.name][here])
            if tensor.name in nexts:
                to = self._buffers[tensor.name][1 - here]
                binding.bind_ortvalue_output(nexts[tensor.name], to)
        for metric, array in self._scalars.items():
            binding.bind_output(metric, "cpu", 0, array.dtype, (), array.ctypes.data)
        self._bindings[key] = binding
        return binding

    def run(self, name: str, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Bind data and scalars, run; the buffers change places."""
        clock = time.monotonic_ns
        t0 = clock()
        binding = self._binding(name)
        for key in self._step.graphs[name].inputs:
            if key in feed:
                binding.bind_cpu_input(key, feed[key])
        t1 = clock()
        self._sessions[name].session.run_with_iobinding(binding)
        if self._on_gpu:
            binding.synchronize_outputs()
        t2 = clock()
        self._turns[name] ^= 1
        for changed in self._nexts[name]:
            self._place[changed] ^= 1
        self.metrics = [float(self._scalars[metric]) for metric in self._step.metrics]
        return t1 - t0, t2 - t1, clock() - t2

    def state(self) -> dict[str, np.ndarray]:
        """Return a copy of the state in host memory."""
        return {name: buffers[self._place[name]].numpy() for name, buffers in self._buffers.items()}
