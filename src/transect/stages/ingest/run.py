"""The ingest stage: logs that somebody else's runs left."""

from __future__ import annotations

import json
from pathlib import Path

from transect.domain.record import Cause
from transect.engine.job import Job, Result
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, facts_of
from transect.launch.processes import Outcome
from transect.stages.ingest.result import result_of
from transect.stages.ingest.worker import RUNS, RUNS_FILE


@RUNNERS.register("ingest")
class Ingest(OneProcess):
    """Runs the parsers in a process of their own."""

    def command(self, job: Job) -> list[str]:
        """One process of the driver."""
        arguments = ["--path", job.spec["path"], "--out", job.folder]
        if limits := job.spec.get("limits"):
            arguments += ["--limits", json.dumps(limits)]
        return job.module("transect.stages.ingest.worker", *arguments)

    def inputs(self, job: Job) -> list[str]:
        """Every log's name and content; of large ones size and time stamp."""
        path = Path(job.spec["path"])
        return [f"{path.name} {facts_of(path, job.paths)}"]

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Count what stands in the logs; a path without any valid number is an answer too."""
        file = job.folder / RUNS_FILE
        if outcome.code or not file.is_file():
            return Result.failed(Cause.CRASH, f"exit code {outcome.code} without a result")
        return result_of(RUNS.validate_json(file.read_bytes()), must_have=False)
