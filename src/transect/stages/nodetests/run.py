"""The nodetests stage: ONNX's operator tests as files of the runner contract."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess


@RUNNERS.register("nodetests")
class NodeTests(OneProcess):
    """Runs `transect.stages.nodetests.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the environment that has `onnx`."""
        return job.module("transect.stages.nodetests.worker", "--out", job.folder)
