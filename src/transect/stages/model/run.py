"""The model stage: a model of ours to ONNX, checked against its framework."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess


@RUNNERS.register("model")
class MadeModels(OneProcess):
    """Runs `transect.stages.model.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the exporter's environment."""
        arguments = ("--spec", job.spec_file, "--out", job.folder)
        return job.module("transect.stages.model.worker", *arguments)
