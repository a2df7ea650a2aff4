"""The classify stage: one classifier, trained and tested."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, all_checksums, checksums_below, need
from transect.text.classifiers import STATE

# What a classifier's record repeats of its rows'.
_TOLD = ("classes", "synthetic", "bayes_accuracy")


@RUNNERS.register("classify")
class Classify(OneProcess):
    """Runs `transect.stages.classify.worker`."""

    # Where an attempt that was killed goes on.
    keeps = (STATE,)

    def command(self, job: Job) -> list[str]:
        """One process in the classifier's environment; a longer run goes on with a shorter one's state."""
        shorter = ("--shorter", need(job, "shorter")) if "shorter" in job.spec["inputs"] else ()
        return job.module(
            "transect.stages.classify.worker",
            "--spec",
            job.spec_file,
            "--encode",
            need(job, "encode"),
            "--vectors",
            need(job, "vectors"),
            *shorter,
            "--out",
            job.folder,
        )

    def inputs(self, job: Job) -> list[str]:
        """Rows with what their classes stand for, vectors, and the shorter run's state."""
        shorter = "shorter" in job.spec["inputs"]
        return [*encoded_checksums(job), *(checksums_below(job.input("shorter"), STATE) if shorter else ())]


def encoded_checksums(job: Job) -> list[str]:
    """Return the checksums of what every classifier takes."""
    return [*all_checksums(job.input("encode"), *_TOLD), *checksums_below(job.input("vectors"), "vectors.npy")]
