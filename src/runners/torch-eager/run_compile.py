"""`torch.compile` with its inductor, under the runner contract (docs/runner-contract.md)."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from typing import Any

from run import Eager, Plan, TorchTrainer, run_program


class Compiled(Eager):
    """Kernels generated for the shape of a full batch, with an empty cache: all is compiled."""

    def __init__(self, plan: Plan, model: str, profile: str) -> None:
        super().__init__(plan, model, profile)
        self.facts["language_options"] = {"inductor_cache": "empty", "dynamic_shapes": False}

    def load_library(self) -> None:
        """Import the compiler."""
        import torch._dynamo
        import torch._inductor.compile_fx  # noqa: F401

    def prepare(self, module: Any) -> Any:
        """Compile by a first call; what it takes is part of the session's time.

        A batch of another size, the partial one, is compiled for when it comes, before anything
        is timed.
        """
        import torch

        compiled = torch.compile(module, dynamic=False)
        compiled(self.zeros())
        return compiled


class CompiledTrainer(TorchTrainer):
    """Forward and backward through `torch.compile`, compiled within the first step."""

    def prepare(self) -> None:
        """Compile the loss with its gradient for the shape of a batch.

        The update stays as it is: compiled, it would have its rate as part of the code, and AdamW's
        bias corrections in float32.
        """
        import torch

        self.facts["language_options"] = {"inductor_cache": "empty", "dynamic_shapes": False}
        self.compute = torch.compile(self.compute, dynamic=False)


def _empty_cache() -> None:
    """Give inductor a cache of this process: another run's kernels would cost no time."""
    folder = tempfile.mkdtemp(prefix="transect-inductor-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.environ["TRITON_CACHE_DIR"] = folder
    # Compile here, not in as many processes as the machine has cores.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"


if __name__ == "__main__":
    _empty_cache()
    sys.exit(run_program("torch-compile", Compiled, CompiledTrainer))
