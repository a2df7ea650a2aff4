"""The other end of step_worker.py: a process in the environment of torch, and calls to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from checkouts import ROOT
from step_coverage import CASES
from warm import Program, warm

HERE = Path(__file__).parent
# Groups of cases that take longest: they have a file of their own, for two workers.
NETWORKS = ("Network", "Attention", "Transformer", "Recurrent")


class StepWorker:
    """Calls functions of step_worker.py by name."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._calls = program.stdin.open("w")
        self._answers = program.stdout.open()

    def __call__(self, function: str, *arguments: Any) -> Any:
        self._calls.write(json.dumps([function, arguments]) + "\n")
        self._calls.flush()
        line = self._answers.readline()
        assert line, f"the worker ended: {self._program.wait()}"
        answer = json.loads(line)
        assert "error" not in answer, f"{answer['error']}\n{answer['trace']}"
        return answer["found"]

    def close(self) -> None:
        """Let it end."""
        self._calls.close()
        self._program.wait()
        self._answers.close()


@contextmanager
def step_worker(python: str, script: Path = HERE / "step_worker.py") -> Iterator[StepWorker]:
    """Start the worker, a script, in a fork of this environment's warm process."""
    paths = {"PYTHONPATH": f"{ROOT / 'src'}:{HERE}"}
    with closing(StepWorker(warm(python).start(script, env=paths, pipes=True))) as worker:
        yield worker


def check_case(worker: StepWorker, name: str) -> None:
    """Compare a case with PyTorch, and expect it to be right."""
    found = worker("case", name)
    assert found["float64"] < CASES[name].bound
    # Nearer to float64 than 32 times what rounding costs PyTorch itself, or each operator once.
    assert found["excess"] <= 1
    assert (found["path"] is None) == (CASES[name].rate is None)
    assert found["path"] is None or found["path"] <= 1
