"""The forecast stage: one short process in the driver's own environment."""

from __future__ import annotations

from transect.domain.files import canonical_json, digest
from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums, cores, need, record_of
from transect.stages.forecast.worker_prediction import COLLECTIVES

_PROFILE = "profile.json"


@RUNNERS.register("forecast")
class Forecast(OneProcess):
    """Runs `transect.stages.forecast.worker`."""

    def command(self, job: Job) -> list[str]:
        """Files of the profile and records of the probes, wherever they lie."""
        arguments = [
            "--spec",
            str(job.spec_file),
            "--out",
            str(job.folder),
            "--profile",
            str(need(job, "profile") / _PROFILE),
            "--cores",
            str(cores(job)),
        ]
        for role in ("messages", *COLLECTIVES):
            if role in job.spec["inputs"]:
                arguments += [f"--{role}", str(need(job, role) / "record.json")]
        return job.module("transect.stages.forecast.worker", *arguments)

    def inputs(self, job: Job) -> list[str]:
        """The profile's file, and the numbers of each probe: its record holds nothing else of it.

        What is not simulated takes nothing.
        """
        if "profile" not in job.spec["inputs"]:
            return []
        found = checksums(job.input("profile") / _PROFILE)
        for role in ("messages", *COLLECTIVES):
            if role in job.spec["inputs"]:
                path = job.input(role) / "record.json"
                if not path.is_file():
                    found.append(f"{role} absent")
                    continue
                record = record_of(path)
                numbers = [one.model_dump(mode="json") for one in record.metrics]
                found.append(f"{role} {digest([canonical_json(numbers)])}")
        return found
