"""ONNX Runtime training 1.19.2 under the runner contract; artefacts from the dynamo exporter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from main import run_program
from plan import Plan


def run_exporter(name: str, exporter: str) -> int:
    """Run the program with artefacts from the files of one exporter; return its exit code."""

    def open_trainer(plan: Plan) -> Any:
        # A package that is missing is a result too.
        from ort_trainer import OrtTrainer

        return OrtTrainer(plan, exporter)

    return run_program(name, None, open_trainer)


if __name__ == "__main__":
    sys.exit(run_exporter("ort-training", "dynamo"))
