"""A workload's own PyTorch module, with its weights: what runs it is a subclass.

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

from engines import Skip  # noqa: E402
from plan import DTYPES, Entry, Plan, Role  # noqa: E402
from workload import read_model  # noqa: E402

_THREADS = ("intra_op_num_threads", "inter_op_num_threads")


def set_up(plan: Plan) -> dict[str, Any]:
    """Set the number of threads, and float32 as float32; return the facts of both.

    Raises Skip where PyTorch sees no CUDA device and one is asked for.
    """
    import torch

    provider = plan.text(Role.PROVIDER)
    if provider == "cuda" and not torch.cuda.is_available():
        raise Skip("this build of PyTorch sees no CUDA device")
    threads = {name: int(text) for name, text in plan.options.items() if name in _THREADS}
    # 0 is the library's own choice.
    if threads.get("intra_op_num_threads"):
        torch.set_num_threads(threads["intra_op_num_threads"])
    if threads.get("inter_op_num_threads"):
        torch.set_num_interop_threads(threads["inter_op_num_threads"])
    # TF32 is not float32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    now = dict(zip(_THREADS, (torch.get_num_threads(), torch.get_num_interop_threads()), strict=True))
    return {
        "runtime_version": torch.__version__,
        "provider_used": provider,
        "session_options": {name: now[name] for name in threads} | {"tf32": False},
        "options_not_set": sorted(plan.options.keys() - threads),
        "run_includes": [],
    }


def torch_dtype(entry: Entry) -> Any:
    """Return torch's type of a tensor's elements."""
    import torch

    return getattr(torch, np.dtype(DTYPES[entry.dtype]).name)


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
        return torch.zeros((self._batch or rows, *sample), dtype=torch_dtype(self._input), device=self.device)

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
