"""The data stage: split, normalise, initial weights, batch order."""

from __future__ import annotations

from pathlib import Path

from transect.execution.job import Job
from transect.execution.stage import RUNNERS
from transect.execution.stage_helpers import OneProcess, facts_of

__all__ = ["Data"]


@RUNNERS.register("data")
class Data(OneProcess):
    """Runs `transect.stages.data.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the base environment."""
        return job.module(
            "transect.stages.data.worker", "--spec", job.spec_file, "--out", job.folder
        )

    def inputs(self, job: Job) -> list[str]:
        """Names and contents of files that the dataset's options name; of large ones time stamps."""
        options = job.spec["parameters"]["dataset_options"]
        folders = [options[key] for key in job.spec.get("dataset_paths", ()) if options.get(key)]
        return [f"{Path(folder).name} {facts_of(Path(folder), job.paths)}" for folder in folders]
