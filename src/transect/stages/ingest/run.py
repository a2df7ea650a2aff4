"""The ingest stage: logs that somebody else's runs left."""

from __future__ import annotations

from pathlib import Path

from transect.execution.job import Job
from transect.execution.stage import RUNNERS
from transect.execution.stage_helpers import OneProcess, facts_of

__all__ = ["Ingest"]


@RUNNERS.register("ingest")
class Ingest(OneProcess):
    """Runs the parsers in a process of their own."""

    def command(self, job: Job) -> list[str]:
        """One process of the driver."""
        arguments = ("--path", job.spec["path"], "--out", job.folder)
        return job.module("transect.stages.ingest.worker", *arguments)

    def inputs(self, job: Job) -> list[str]:
        """Every log's name, size and time stamp: logs may be large."""
        path = Path(job.spec["path"])
        return [f"{path.name} {facts_of(path)}"]
