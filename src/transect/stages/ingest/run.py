"""The ingest stage: logs that somebody else's runs left."""

from __future__ import annotations

from transect.domain.record import Cause
from transect.engine.job import Job, Result
from transect.engine.stage_helpers import OneProcess
from transect.launch.processes import Outcome
from transect.payloads.ingest import RUNS, RUNS_FILE
from transect.stages.ingest.result import result_of


class IngestRunner(OneProcess):
    """One process that reads the logs."""

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Count what stands in the logs; a path without any valid number is an answer too."""
        file = job.folder / RUNS_FILE
        if outcome.code or not file.is_file():
            return Result.failed(Cause.CRASH, f"exit code {outcome.code} without a result")
        return result_of(RUNS.validate_json(file.read_bytes()), must_have=False)
