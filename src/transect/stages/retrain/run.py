"""The retrain stage: runtimes go on training a base model, in turn where there are several."""

from __future__ import annotations

import json
import sys

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums_below, need
from transect.runtimes import EVALUATION, RUNTIMES


@RUNNERS.register("retrain")
class Retrain(OneProcess):
    """Runs `transect.stages.retrain.worker`, which starts the runtimes' programs."""

    measures = True
    in_environment = False
    # The last checkpoint, and the records of the turns that are done.
    keeps = ("checkpoint.safetensors", "turn-*.json")

    def command(self, job: Job) -> list[str]:
        """One process of the driver; it is told how programs of each environment are started."""
        programs = {}
        for name in (*job.cell.get("runtimes"), EVALUATION):
            programs[name] = job.program(RUNTIMES.get(name).environment)
        return [
            sys.executable,
            "-m",
            "transect.stages.retrain.worker",
            "--spec",
            str(job.spec_file),
            "--step",
            str(need(job, "step")),
            "--out",
            str(job.folder),
            "--programs",
            json.dumps(programs),
        ]

    def inputs(self, job: Job) -> list[str]:
        """The graphs, the rows, the base of its repeat, and its own problem."""
        problem = job.spec["problem"]
        return checksums_below(
            job.input("step"),
            "step",
            "data",
            "test",
            "facts.json",
            f"states/state-{problem['repeat']}.safetensors",
            f"problems/{problem['name']}",
        )
