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

__all__ = ["StepWorker", "step_worker"]


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
def step_worker(python: str) -> Iterator[StepWorker]:
    """Start the worker in this interpreter's environment."""
    script = Path(__file__).with_name("step_worker.py")
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
