"""PyTorch in eager mode, under the runner contract (docs/runner-contract.md): the yardstick.

`--model` is a JSON file {"workload": NAME, "weights": FILE.npz}, the weights in the neutral
layout, the file absolute or relative to the JSON. The workload comes from transect.training.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

_SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_SOURCE), str(_SOURCE / "runners" / "python")]

from contract import BadInput, Skip, run_program  # noqa: E402

__all__ = ["Eager", "open_engine"]

_THREADS = ("intra_op_num_threads", "inter_op_num_threads")


def _module(path: Path, device: str) -> Any:
    """Build the workload's module with its weights in float32, without gradients."""
    import torch

    from transect.training.frameworks._torch_modules import build_module, load_weights
    from transect.training.workloads import WORKLOADS

    try:
        model = json.loads(path.read_text())
        workload = WORKLOADS.get(model["workload"])
        with np.load(path.parent / model["weights"]) as file:
            weights = {name: file[name] for name in file.files}
        module = load_weights(build_module(workload.layers).eval(), weights, torch.float32)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path}: {type(error).__name__}: {error}") from error
    return module.requires_grad_(False).to(device)


class Eager:
    """The module as trained. A subclass may compile it in `prepare`."""

    def __init__(self, given: argparse.Namespace, profile: str | None) -> None:
        import torch

        if given.provider not in ("cpu", "cuda"):
            raise BadInput(f"--provider {given.provider}: expected one of cpu, cuda")
        self._cuda = given.provider == "cuda"
        if self._cuda and not torch.cuda.is_available():
            raise Skip("this build of PyTorch sees no CUDA device")
        options = given.options
        if "intra_op_num_threads" in options:
            torch.set_num_threads(options["intra_op_num_threads"])
        if "inter_op_num_threads" in options:
            torch.set_num_interop_threads(options["inter_op_num_threads"])
        # TF32 is not float32.
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self.output_names, self.output_types = ["output"], {"output": "tensor(float)"}
        self.results: list[Any] = []
        begin = time.monotonic_ns()
        self.module = self.prepare(_module(given.model, given.provider), given)
        self.session_ns = time.monotonic_ns() - begin
        set_now = dict(
            zip(_THREADS, (torch.get_num_threads(), torch.get_num_interop_threads()), strict=True)
        )
        self.facts: dict[str, Any] = {
            "runtime_version": torch.__version__,
            "provider_used": given.provider,
            "session_options": {key: set_now[key] for key in _THREADS if key in options}
            | {"inference_mode": True, "tf32": False},
            "options_not_set": sorted(key for key in options if key not in _THREADS),
            "run_includes": [],
        }

    def prepare(self, module: Any, given: argparse.Namespace) -> Any:
        """Return what is called."""
        return module

    def check(self, tensors: dict[str, np.ndarray], dtypes: dict[str, str]) -> None:
        """A workload takes one tensor of float32."""
        if list(dtypes.values()) != ["float32"]:
            raise BadInput(f"a workload takes one float32 input, --inputs gives {dtypes}")

    def step(self, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Move the input to the device, run, move the output back."""
        import torch

        (array,) = feed.values()
        clock = time.monotonic_ns
        with torch.inference_mode():
            t0 = clock()
            x = torch.from_numpy(array).to("cuda" if self._cuda else "cpu")
            if self._cuda:
                torch.cuda.synchronize()
            t1 = clock()
            y = self.module(x)
            if self._cuda:
                torch.cuda.synchronize()
            t2 = clock()
            self.results = [y.cpu().numpy().copy()]
            t3 = clock()
        return t1 - t0, t2 - t1, t3 - t2

    def end_profile(self) -> str:
        """Say that there is none: ONNX Runtime's profiler is not PyTorch's."""
        raise BadInput("--profile: this runner runs no ONNX Runtime")


def open_engine(given: argparse.Namespace, profile: str | None) -> Any:
    """Make the module."""
    if profile:
        raise BadInput("--profile: this runner runs no ONNX Runtime")
    return Eager(given, profile)


if __name__ == "__main__":
    sys.exit(run_program("torch-eager", open_engine))
