"""The other end of step_worker.py: a process in the environment of torch, and calls to it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from checkouts import ROOT
from transect.portable_step.coverage import CASES

__all__ = ["NETWORKS", "StepWorker", "check_case", "step_worker"]

# Groups of cases that take longest: they have a file of their own, for two workers.
NETWORKS = ("Network", "Attention", "Transformer", "Recurrent")


class StepWorker:
    """Calls functions of step_worker.py by name."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, function: str, *arguments: Any) -> Any:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([function, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the worker ended with {self._process.wait()}"
        answer = json.loads(line)
        assert "error" not in answer, f"{answer['error']}\n{answer['trace']}"
        return answer["found"]


@contextmanager
def step_worker(python: str, name: str = "step_worker.py") -> Iterator[StepWorker]:
    """Start the worker, a script of this folder, in this interpreter's environment."""
    script = Path(__file__).with_name(name)
    paths = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | paths,
    )  # fmt: skip
    try:
        yield StepWorker(process)
    finally:
        assert process.stdin
        process.stdin.close()
        process.wait()


def check_case(worker: StepWorker, name: str) -> None:
    """Compare a case with PyTorch, and expect it to be right."""
    found = worker("case", name)
    assert found["float64"] < CASES[name].bound
    # Nearer to float64 than 32 times what rounding costs PyTorch itself, or each operator once.
    assert found["excess"] <= 1
    assert (found["path"] is None) == (CASES[name].rate is None)
    assert found["path"] is None or found["path"] <= 1
