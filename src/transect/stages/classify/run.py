"""The classify stage: one classifier, trained and tested."""

from __future__ import annotations

from transect.domain.files import canonical_json, digest
from transect.execution.job import Job
from transect.execution.stage import RUNNERS
from transect.execution.stage_helpers import OneProcess, checksums_below, need, record_of
from transect.text.classifiers import STATE

__all__ = ["FACTS_OF_CORPUS", "Classify", "encoded_checksums"]

# What a classifier's record repeats of its corpus.
FACTS_OF_CORPUS = ("classes", "synthetic", "bayes_accuracy")


@RUNNERS.register("classify")
class Classify(OneProcess):
    """Runs `transect.stages.classify.worker`."""

    # Where an attempt that was killed goes on.
    keeps = (STATE,)

    def command(self, job: Job) -> list[str]:
        """One process in the classifier's environment; a longer run goes on with a shorter one's state."""
        shorter = ("--shorter", need(job, "shorter")) if "shorter" in job.spec["inputs"] else ()
        return job.module(
            "transect.stages.classify.worker", "--spec", job.spec_file,
            "--corpus", need(job, "corpus"), "--encode", need(job, "encode"),
            "--vectors", need(job, "vectors"), *shorter, "--out", job.folder,
        )  # fmt: skip

    def inputs(self, job: Job) -> list[str]:
        """Rows, vectors, what is known of the corpus, and the shorter run's state."""
        shorter = "shorter" in job.spec["inputs"]
        return [
            *encoded_checksums(job),
            *(checksums_below(job.input("shorter"), STATE) if shorter else ()),
        ]


def encoded_checksums(job: Job) -> list[str]:
    """Return the checksums of what every classifier takes."""
    encode = job.input("encode")
    try:
        names = sorted(record_of(encode / "record.json").files)
        details = record_of(job.input("corpus") / "record.json").details
        facts = digest([canonical_json({key: details.get(key) for key in FACTS_OF_CORPUS})])
    except OSError:
        names, facts = [], "absent"
    return [
        *checksums_below(encode, *(names or ("rows",))),
        *checksums_below(job.input("vectors"), "vectors.npy"), f"corpus {facts}",
    ]  # fmt: skip
