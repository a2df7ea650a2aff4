"""Jobs of one cell, payloads of one line and a guard, for tests that run cells without a study."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from transect.domain.cell import Cell
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause
from transect.engine.job import Job, Result
from transect.engine.stage_helpers import StageRunner
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.measure.guard import Guard, snapshot

PROBE = Cell.of(stage="bench", benchmark="memory-bandwidth-probe")
LIMITS = {"seconds": 60, "memory_mb": None, "repeats_if_disturbed": 0, "repeat_seconds": 60}


def make_job(
    folder: Path, cell: Cell = PROBE, cell_limits: dict[str, Any] | None = None, facts: Any = None, **spec: Any
) -> Job:
    """Return the job of a cell, whose folder is there; `facts` are its environment's, `spec` is what the payload is told besides."""
    defaults = {"study": "s", "fingerprint": "f" * 16, "inputs": {}, "system": {}, "cell": cell.axes()}
    defaults["cell_limits"] = LIMITS | (cell_limits or {})
    paths, python = StudyPaths(results=folder, study="s"), sys.executable
    job = Job(spec=defaults | spec, cell=cell, paths=paths, python=python, bin=None, environment=facts or {})
    job.folder.mkdir(parents=True, exist_ok=True)
    return job


class OneLine(StageRunner):
    """A stage whose payload is a line of Python."""

    def __init__(
        self, code: str = "", *, measures: bool = False, keeps: tuple[str, ...] = (), **variables: str
    ) -> None:
        self.code, self.measures, self.keeps, self.variables = code, measures, keeps, variables

    def prepare(self, job: Job) -> tuple[str, Request]:
        wrap, variables = job.wrap()
        command = [job.python, "-c", self.code]
        return "plain", Request(command=command, wrap=wrap, variables=variables | self.variables)

    def inputs(self, job: Job) -> list[str]:
        return []

    def collect(self, job: Job, outcome: Outcome) -> Result:
        return Result.failed(Cause.CRASH, f"exit code {outcome.code}") if outcome.code else Result()


class Noisy(Guard):
    """Sees a stranger in the first looks, and nobody else.

    A window of no length tells nothing of cores: one tick of the kernel's clock looks like a busy one.
    """

    def __init__(self, noisy_looks: int = 0) -> None:
        self.looks, self.noisy_looks = 0, noisy_looks

    def look(self) -> list[dict[str, Any]]:
        self.looks += 1
        stranger = [{"pid": 1, "name": "backup", "cores": 1.0}] if self.looks <= self.noisy_looks else []
        return [snapshot(0) | {"foreign": stranger, "unseen_cores": 0.0}]
