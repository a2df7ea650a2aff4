"""The corpus stage: tickets of one source."""

from __future__ import annotations

from pathlib import Path

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, facts_of
from transect.text.formats import FORMATS
from transect.text.salt import read_salt, salt_file


@RUNNERS.register("corpus")
class Corpora(OneProcess):
    """Runs `transect.stages.corpus.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the text environment."""
        salt = ["--salt", str(salt_file().absolute())] if _has_people(job) else []
        return job.module("transect.stages.corpus.worker", "--spec", job.spec_file, "--out", job.folder, *salt)

    def inputs(self, job: Job) -> list[str]:
        """What is read, and the salt: with another one, everybody has other pseudonyms."""
        if not _has_people(job):
            return []
        source = facts_of(Path(job.spec["rule"]["path"]), job.paths)
        return [f"source {source}", f"salt {read_salt(salt_file()).fingerprint}"]


def _has_people(job: Job) -> bool:
    return FORMATS.get(job.spec["rule"]["format"]).reads
