"""A workload's Keras model as a `tf.function`, under the runner contract (docs/runner-contract.md).

The model is a JSON file {"workload": NAME, "weights": FILE.npz}, as for the runners of PyTorch.
TensorFlow's kernels on the CPU want channels last: the input is turned to that when it is bound.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

_SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_SOURCE), str(_SOURCE / "runners" / "python")]

from main import run_program  # noqa: E402
from plan import Plan  # noqa: E402
from workload import read_model  # noqa: E402

_THREADS = ("intra_op_num_threads", "inter_op_num_threads")


class Function:
    """The model, traced once for any number of rows."""

    def __init__(self, plan: Plan, model: str, profile: str) -> None:
        begin = time.monotonic_ns()
        described, weights = read_model(model)
        reading_ns = time.monotonic_ns() - begin
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        os.environ["KERAS_BACKEND"] = "tensorflow"
        import keras
        import tensorflow as tf

        tf.config.set_visible_devices([], "GPU")
        threading = tf.config.threading
        set_now = {}
        for key in plan.options.keys() & _THREADS:
            name = key.replace("num", "parallelism")
            getattr(threading, f"set_{name}")(int(plan.options[key]))
            set_now[key] = getattr(threading, f"get_{name}")()
        self._tf = tf
        self.results: list[Any] = []
        begin = time.monotonic_ns()
        self._function = self._traced(keras, described, weights)
        self.facts: dict[str, Any] = {
            "runtime_version": tf.__version__,
            "provider_used": "cpu",
            "session_options": set_now,
            "options_not_set": sorted(plan.options.keys() - _THREADS),
            "run_includes": [],
            "session_ns": reading_ns + time.monotonic_ns() - begin,
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


if __name__ == "__main__":
    sys.exit(run_program("tensorflow", Function))
