"""TensorFlow: the framework's own graph of a workload, beside ONNX."""

from __future__ import annotations

from pathlib import Path

from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes._baseline import Baseline


@RUNTIMES.register("tensorflow", "tf")
class TensorflowRuntime(Baseline):
    """The workload's Keras model as a `tf.function`, with the weights that were trained."""

    environment = "tensorflow"
    imports = ("tensorflow", "numpy", "numpy.libs", "keras")
    program = RUNNERS / "tensorflow" / "run.py"
    # The environment's TensorFlow is the one for CPUs.
    providers = ("cpu",)

    def code_files(self) -> list[Path]:
        """Return the program's file, and what builds the model."""
        return [self.program, *self.shared_files("_channels_last", "_keras_model")]
