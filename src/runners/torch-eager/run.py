"""PyTorch in eager mode, under the runner contract (docs/runner-contract.md): the yardstick."""

from __future__ import annotations

import sys

from eager import Eager, run_torch
from torch_trainer import TorchTrainer

if __name__ == "__main__":
    sys.exit(run_torch("torch-eager", Eager, TorchTrainer))
