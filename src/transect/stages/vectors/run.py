"""The vectors stage: a vocabulary, and a vector for each of its words."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums_below, need


@RUNNERS.register("vectors")
class WordVectors(OneProcess):
    """Runs `transect.stages.vectors.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the text environment."""
        return job.module(
            "transect.stages.vectors.worker",
            "--spec",
            job.spec_file,
            "--tokens",
            need(job, "tokens"),
            "--partition",
            need(job, "partition"),
            "--out",
            job.folder,
        )

    def inputs(self, job: Job) -> list[str]:
        """The words of the texts, and which of them train."""
        return [
            *checksums_below(job.input("tokens"), "tokens.npy", "offsets.npy", "words.json"),
            *checksums_below(job.input("partition"), "parts.npz"),
        ]
