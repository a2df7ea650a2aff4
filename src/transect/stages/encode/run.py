"""The encode stage: tickets as rows of word numbers."""

from __future__ import annotations

from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest
from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums_below, need, record_of
from transect.stages.encode.worker import TOLD


@RUNNERS.register("encode")
class Encode(OneProcess):
    """Runs `transect.stages.encode.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the text environment."""
        roles = ("corpus", "tokens", "partition", "vectors")
        folders = [argument for role in roles for argument in (f"--{role}", need(job, role))]
        return job.module("transect.stages.encode.worker", "--spec", job.spec_file, *folders, "--out", job.folder)

    def inputs(self, job: Job) -> list[str]:
        """Labels with what they stand for, words, parts and vocabulary."""
        return [
            *checksums_below(job.input("corpus"), "labels.npy"),
            _facts_of_corpus(job),
            *checksums_below(job.input("tokens"), "tokens.npy", "offsets.npy", "words.json"),
            *checksums_below(job.input("partition"), "parts.npz"),
            *checksums_below(job.input("vectors"), "vocabulary.json"),
        ]


def _facts_of_corpus(job: Job) -> str:
    try:
        details = record_of(job.input("corpus") / "record.json").details
    except (OSError, BadInput):
        return "corpus absent"
    return f"corpus {digest([canonical_json({key: details.get(key) for key in TOLD})])}"
