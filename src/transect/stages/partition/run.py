"""The partition stage: which tickets train, and which serve what else."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums, need


@RUNNERS.register("partition")
class Partitions(OneProcess):
    """Runs `transect.stages.partition.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the text environment."""
        return job.module(
            "transect.stages.partition.worker",
            "--spec",
            job.spec_file,
            "--corpus",
            need(job, "corpus"),
            "--out",
            job.folder,
        )

    def inputs(self, job: Job) -> list[str]:
        """Labels, times and owners; what the tickets say does not matter."""
        corpus = job.input("corpus")
        return checksums(*(corpus / f"{name}.npy" for name in ("labels", "times", "owners")))
