"""How each stage runs its payload and reads its result: `transect/stages/NAME/run.py`."""

from __future__ import annotations

from typing import Protocol

from transect.domain.registry import StageRegistry
from transect.engine.job import Job, Result
from transect.launch import Request
from transect.launch.processes import Outcome


class StageRunner(Protocol):
    """One stage of the pipeline.

    It may have `keeps`, names or patterns of files in the cell's folder with which a second attempt at
    the same work goes on, such as a checkpoint; without it an interrupted cell begins again. And
    `who(job, outcome)`, which says what process died by a signal, or that it does not know: "".
    """

    # A disturbed measurement is repeated; a disturbed computation is not.
    measures: bool

    def prepare(self, job: Job) -> tuple[str, Request]:
        """Return the launcher's name and what it is to start. May raise TransectError."""
        ...

    def inputs(self, job: Job) -> list[str]:
        """Return what of its inputs the outcome depends on: `NAME CHECKSUM` for each."""
        ...

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Read what the payload left; called when it ended by itself, whatever its code."""
        ...


RUNNERS: StageRegistry[StageRunner] = StageRegistry("stage runner", "run", alone=True)
