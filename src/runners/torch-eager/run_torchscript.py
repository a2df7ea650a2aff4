"""PyTorch's TorchScript, traced and frozen, under the runner contract (docs/runner-contract.md)."""

from __future__ import annotations

from typing import Any

from run import Eager, end_process, run_program


class TorchScript(Eager):
    """`torch.jit.trace` and `torch.jit.freeze`: weights become constants of the graph."""

    def prepare(self, module: Any) -> Any:
        """Trace on one batch of the inputs' shape; other numbers of rows take the same graph."""
        import torch

        return torch.jit.freeze(torch.jit.trace(module, self.zeros()))


if __name__ == "__main__":
    end_process(run_program("torchscript", TorchScript))
