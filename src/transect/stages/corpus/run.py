"""The corpus stage: tickets are parsed and normalised, and identities hashed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.engine.job import Job
from transect.engine.stage_helpers import OneProcess, facts_of
from transect.text.formats import FORMATS
from transect.text.salt import read_salt, salt_file


class CorpusRunner(OneProcess):
    """One process, which gets the path of the salt."""

    def run_values(self, job: Job) -> dict[str, Any]:
        """The file of the salt, where there are people."""
        return {"salt": str(salt_file().absolute())} if _has_people(job) else {}

    def inputs(self, job: Job) -> list[str]:
        """What is read, and the salt: with another one, everybody has other pseudonyms."""
        if not _has_people(job):
            return []
        source = facts_of(Path(job.spec["rule"]["path"]), job.paths)
        return [f"source {source}", f"salt {read_salt(salt_file()).fingerprint}"]


def _has_people(job: Job) -> bool:
    return FORMATS.get(job.spec["rule"]["format"]).reads
