"""A workload's Keras model as a `tf.function`, under the runner contract (docs/runner-contract.md).

`--model` is a JSON file {"workload": NAME, "weights": FILE.npz}, as for the runners of PyTorch.
TensorFlow's kernels on the CPU want channels last: the input is turned to that when it is bound.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

_SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_SOURCE), str(_SOURCE / "runners" / "python")]

from contract import run_program  # noqa: E402
from tensors import BadInput  # noqa: E402
from workload import batch_shape, read_model  # noqa: E402

_THREADS = {
    "intra_op_num_threads": "intra_op_parallelism_threads",
    "inter_op_num_threads": "inter_op_parallelism_threads",
}


class Function:
    """The model, traced once for any number of rows."""

    def __init__(self, given: argparse.Namespace, profile: str | None) -> None:
        if profile:
            raise BadInput("--profile: this runner runs no ONNX Runtime")
        if given.provider != "cpu":
            raise BadInput(f"--provider {given.provider}: expected cpu")
        begin = time.monotonic_ns()
        model, weights = read_model(given.model)
        reading_ns = time.monotonic_ns() - begin
        batch_shape(given.inputs, model)
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        os.environ["KERAS_BACKEND"] = "tensorflow"
        import keras
        import tensorflow as tf

        tf.config.set_visible_devices([], "GPU")
        threading = tf.config.threading
        set_now = {}
        for key, name in _THREADS.items():
            if key in given.options:
                getattr(threading, f"set_{name}")(given.options[key])
                set_now[key] = getattr(threading, f"get_{name}")()
        self._tf = tf
        self.output_names, self.output_types = ["output"], {"output": "tensor(float)"}
        self.results: list[Any] = []
        begin = time.monotonic_ns()
        self._function = self._traced(keras, model, weights)
        self.session_ns = reading_ns + time.monotonic_ns() - begin
        self.facts: dict[str, Any] = {
            "runtime_version": tf.__version__,
            "provider_used": "cpu",
            "session_options": set_now,
            "options_not_set": sorted(key for key in given.options if key not in _THREADS),
            "run_includes": [],
            "language_options": {
                "keras": keras.__version__,
                "layout": "channels last, turned to in bind",
                "jit_compile": False,
            },
        }

    def _traced(self, keras: Any, described: Any, weights: dict[str, np.ndarray]) -> Any:
        """Return the concrete function."""
        from transect.training.frameworks._channels_last import to_native
        from transect.training.frameworks._keras_model import build_model, configure

        configure(keras, "float32", "channels_last")
        model, variables = build_model(keras, described.layers, described.sample)
        native = to_native(weights, described.layers, described.sample)
        for name, variable in variables.items():
            variable.assign(native[name].astype(np.float32))
        shape = (None, *model.input_shape[1:])
        function = self._tf.function(lambda x: model(x, training=False))
        return function.get_concrete_function(self._tf.TensorSpec(shape, "float32"))

    def check(self, tensors: dict[str, np.ndarray], dtypes: dict[str, str]) -> None:
        """Do nothing: `batch_shape` has looked before the framework was loaded."""

    def step(self, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Turn the input to channels last, run, copy the output."""
        (array,) = feed.values()
        clock = time.monotonic_ns
        # What the last run gave is given back here, not in the time of this one.
        self.results = []
        t0 = clock()
        if array.ndim == 4:
            array = array.transpose(0, 2, 3, 1)
        x = self._tf.convert_to_tensor(array)
        t1 = clock()
        y = self._function(x)
        t2 = clock()
        self.results = [np.array(y)]
        t3 = clock()
        return t1 - t0, t2 - t1, t3 - t2

    def end_profile(self) -> str:
        """Say that there is none: ONNX Runtime's profiler is not TensorFlow's."""
        raise BadInput("--profile: this runner runs no ONNX Runtime")


if __name__ == "__main__":
    sys.exit(run_program("tensorflow", Function))
