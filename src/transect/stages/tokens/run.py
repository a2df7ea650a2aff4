"""The tokens stage: texts become words, and their lengths are described."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums, need


@RUNNERS.register("tokens")
class Tokens(OneProcess):
    """Runs `transect.stages.tokens.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the text environment."""
        return job.module(
            "transect.stages.tokens.worker",
            "--spec",
            job.spec_file,
            "--dialogue",
            need(job, "dialogue"),
            "--out",
            job.folder,
        )

    def inputs(self, job: Job) -> list[str]:
        """The texts."""
        return checksums(job.input("dialogue") / "texts.jsonl")
