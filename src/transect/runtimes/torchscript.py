"""PyTorch's TorchScript: the framework's older compiler, beside eager mode and ONNX."""

from __future__ import annotations

from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes.torch_eager import TorchEagerRuntime


@RUNTIMES.register("torchscript")
class TorchScriptRuntime(TorchEagerRuntime):
    """The model as trained, traced and frozen by `torch.jit`."""

    # Frozen weights are constants.
    trains = False
    program = RUNNERS / "torch-eager" / "run_torchscript.py"
