"""PyTorch in eager mode, under the runner contract (docs/runner-contract.md): the yardstick.

The model is a JSON file {"workload": NAME, "weights": FILE.npz}, the weights in the neutral layout.
The workload comes from transect.training.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

_SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_SOURCE), str(_SOURCE / "runners" / "python")]

from main import run_program  # noqa: E402
from plan import DTYPES, Plan, Role  # noqa: E402
from torch_trainer import TorchTrainer, set_up  # noqa: E402
from workload import read_model  # noqa: E402

from transect.training.departure import end_process  # noqa: E402


class Eager:
    """The module as trained. A subclass may compile it in `prepare`."""

    def __init__(self, plan: Plan, model: str, profile: str) -> None:
        self.device = plan.text(Role.PROVIDER)
        begin = time.monotonic_ns()
        described, weights = read_model(model)
        reading_ns = time.monotonic_ns() - begin
        (self._input,), self._batch = plan.of(Role.INPUT), plan.batch
        self.load_library()
        import torch

        from transect.training.frameworks._torch_modules import load_weights

        self.facts = set_up(plan)
        self.facts["session_options"]["inference_mode"] = True
        self.results: list[Any] = []
        begin = time.monotonic_ns()
        with torch.inference_mode():
            module = load_weights(described.torch_module().eval(), weights, torch.float32)
            self.module = self.prepare(module.requires_grad_(False).to(self.device))
        self.facts["session_ns"] = reading_ns + time.monotonic_ns() - begin

    def load_library(self) -> None:
        """Import what is part of the library: no session's time."""

    def zeros(self) -> Any:
        """Return a full batch of the inputs' shape and type."""
        import torch

        rows, *sample = self._input.shape
        array = np.zeros((self._batch or rows, *sample), DTYPES[self._input.dtype])
        return torch.from_numpy(array).to(self.device)

    def prepare(self, module: Any) -> Any:
        """Return what is called; the time counts as that of the session."""
        return module

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


if __name__ == "__main__":
    # Torch takes a second to take itself apart.
    end_process(run_program("torch-eager", Eager, TorchTrainer))
