"""A workload's own PyTorch module, with its weights: what runs it is a subclass.

`--model` is a JSON file {"workload": NAME, "weights": FILE.npz}, the weights in the neutral
layout, the file absolute or relative to the JSON. The workload comes from transect.training.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

_SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_SOURCE), str(_SOURCE / "runners" / "python")]

from contract import run_program  # noqa: E402
from engines import OpenTrainer, Skip  # noqa: E402
from tensors import BadInput  # noqa: E402
from train import run_train  # noqa: E402
from workload import batch_shape, input_dtype, read_model  # noqa: E402

_THREADS = ("intra_op_num_threads", "inter_op_num_threads")


def set_up(given: argparse.Namespace) -> dict[str, Any]:
    """Set the number of threads, and float32 as float32; return what the record says of both.

    Raises Skip where PyTorch sees no CUDA device and one is asked for.
    """
    import torch

    if given.provider == "cuda" and not torch.cuda.is_available():
        raise Skip("this build of PyTorch sees no CUDA device")
    options = given.options
    # 0 is the library's own choice.
    if options.get("intra_op_num_threads"):
        torch.set_num_threads(options["intra_op_num_threads"])
    if options.get("inter_op_num_threads"):
        torch.set_num_interop_threads(options["inter_op_num_threads"])
    # TF32 is not float32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    now = dict(zip(_THREADS, (torch.get_num_threads(), torch.get_num_interop_threads()), strict=True))
    return {
        "runtime_version": torch.__version__,
        "provider_used": given.provider,
        "session_options": {key: now[key] for key in _THREADS if key in options} | {"tf32": False},
        "options_not_set": sorted(key for key in options if key not in _THREADS),
    }


class Eager:
    """The module as trained. A subclass may compile it in `prepare`."""

    def __init__(self, given: argparse.Namespace, profile: str | None) -> None:
        if profile:
            raise BadInput("--profile: this runner runs no ONNX Runtime")
        if given.provider not in ("cpu", "cuda"):
            raise BadInput(f"--provider {given.provider}: expected one of cpu, cuda")
        self.device = given.provider
        begin = time.monotonic_ns()
        model, weights = read_model(given.model)
        reading_ns = time.monotonic_ns() - begin
        self._batch = batch_shape(given.inputs, model), input_dtype(model)
        self.load_library()
        import torch

        from transect.training.frameworks._torch_modules import load_weights

        self.facts = set_up(given) | {"run_includes": []}
        self.facts["session_options"]["inference_mode"] = True
        self.output_names, self.output_types = ["output"], {"output": "tensor(float)"}
        self.results: list[Any] = []
        begin = time.monotonic_ns()
        with torch.inference_mode():
            module = load_weights(model.torch_module().eval(), weights, torch.float32)
            self.module = self.prepare(module.requires_grad_(False).to(self.device))
        self.session_ns = reading_ns + time.monotonic_ns() - begin

    def load_library(self) -> None:
        """Import what is part of the library: no session's time."""

    def zeros(self) -> Any:
        """Return a full batch of the inputs' shape and type."""
        import torch

        shape, dtype = self._batch
        return torch.zeros(shape, dtype=getattr(torch, dtype), device=self.device)

    def prepare(self, module: Any) -> Any:
        """Return what is called; the time counts as that of the session."""
        return module

    def check(self, tensors: dict[str, np.ndarray], dtypes: dict[str, str]) -> None:
        """Do nothing: `batch_shape` has looked before the framework was loaded."""

    def step(self, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Move the input to the device, run, move the output back."""
        import torch

        (array,) = feed.values()
        clock, cuda = time.monotonic_ns, self.device == "cuda"
        with torch.inference_mode():
            # What the last run gave is given back here, not in the time of this one.
            self.results = []
            t0 = clock()
            x = torch.from_numpy(array).to(self.device)
            if cuda:
                torch.cuda.synchronize()
            t1 = clock()
            y = self.module(x)
            if cuda:
                torch.cuda.synchronize()
            t2 = clock()
            self.results = [y.cpu().numpy().copy()]
            t3 = clock()
        return t1 - t0, t2 - t1, t3 - t2

    def end_profile(self) -> str:
        """Say that there is none: ONNX Runtime's profiler is not PyTorch's."""
        raise BadInput("--profile: this runner runs no ONNX Runtime")


def run_torch(name: str, engine: type[Eager], trainer: OpenTrainer | None = None) -> int:
    """Run the program of a baseline; return its exit code."""
    return run_program(name, engine, train=partial(run_train, open_trainer=trainer) if trainer else None)
