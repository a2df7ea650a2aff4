"""PyTorch in eager mode, under the runner contract (docs/runner-contract.md): the yardstick."""

from __future__ import annotations

import sys

from eager import Eager
from main import run_program
from torch_trainer import TorchTrainer

if __name__ == "__main__":
    sys.exit(run_program("torch-eager", Eager, TorchTrainer))
