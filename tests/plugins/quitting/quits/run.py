"""Who runs a stage that calls sys.exit wherever it is asked to."""

from __future__ import annotations

import sys

from transect.engine.job import Job, Result
from transect.engine.stage_helpers import OneProcess
from transect.launch.processes import Outcome


class QuitsRunner(OneProcess):
    """Quits."""

    def command(self, job: Job) -> list[str]:
        """Quit before the payload, or in it."""
        if job.cell.where == "command":
            sys.exit(0)
        return [sys.executable, "-c", "import sys; sys.exit(0)"]

    def inputs(self, job: Job) -> list[str]:
        """Quit where a fingerprint is made."""
        if job.cell.where == "inputs":
            sys.exit(0)
        return []

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Quit after the payload."""
        if job.cell.where == "collect":
            sys.exit(0)
        return super().collect(job, outcome)
