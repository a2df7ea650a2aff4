"""The data stage: split, normalise, initial weights, batch order."""

from __future__ import annotations

import json
from pathlib import Path

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, all_checksums, facts_of, need


@RUNNERS.register("data")
class Data(OneProcess):
    """Runs `transect.stages.data.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the base environment; it is told where the cells lie that it takes."""
        cells = {role: str(need(job, role)) for role in job.spec["inputs"]}
        more = ("--cells", json.dumps(cells)) if cells else ()
        return job.module("transect.stages.data.worker", "--spec", job.spec_file, *more, "--out", job.folder)

    def inputs(self, job: Job) -> list[str]:
        """Names and contents of files that the dataset's options name, of large ones time stamps.

        Of cells that it takes, all files, and what it reads of their records.
        """
        details = job.spec.get("dataset_details", ())
        taken = [one for role in job.spec["inputs"] for one in all_checksums(job.input(role), *details)]
        options = job.spec["parameters"]["dataset_options"]
        folders = [options[key] for key in job.spec.get("dataset_paths", ()) if options.get(key)]
        return taken + [f"{Path(one).name} {facts_of(Path(one), job.paths)}" for one in folders]
