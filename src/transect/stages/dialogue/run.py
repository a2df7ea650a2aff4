"""The dialogue stage: what is read of each ticket."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums, need


@RUNNERS.register("dialogue")
class Dialogue(OneProcess):
    """Runs `transect.stages.dialogue.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the text environment."""
        return job.module(
            "transect.stages.dialogue.worker",
            "--spec",
            job.spec_file,
            "--corpus",
            need(job, "corpus"),
            "--out",
            job.folder,
        )

    def inputs(self, job: Job) -> list[str]:
        """The tickets."""
        return checksums(job.input("corpus") / "tickets.jsonl")
