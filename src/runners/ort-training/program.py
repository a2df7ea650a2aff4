"""What the programs of ONNX Runtime training share."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from contract import run_program
from step_folder import Step
from tensors import BadInput
from train import run_train


def run_exporter(name: str, exporter: str) -> int:
    """Run the program with artefacts from the files of one exporter; return its exit code."""

    def open_trainer(given: argparse.Namespace, step: Step) -> Any:
        # The package takes a while to import: bad input is told before.
        from ort_trainer import OrtTrainer

        return OrtTrainer(given, step, exporter)

    return run_program(name, _no_engine, modes=(), train=partial(run_train, open_trainer=open_trainer))


def _no_engine(given: argparse.Namespace, profile: str | None) -> Any:
    raise BadInput(f"--mode {given.mode}: ONNX Runtime training has train only")
