"""The roundtrip stage: an exported file, loaded by another framework."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums_below, need
from transect.onnx_models.facts import FACTS


@RUNNERS.register("roundtrip")
class Roundtrip(OneProcess):
    """Runs `transect.stages.roundtrip.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the loader's environment."""
        arguments = ("--spec", job.spec_file, "--model", need(job, "model"), "--out", job.folder)
        return job.module("transect.stages.roundtrip.worker", *arguments)

    def inputs(self, job: Job) -> list[str]:
        """The file, what was drawn with it, and what the first framework computed, to which tolerance."""
        return checksums_below(job.input("model"), "model.onnx", "inputs", "expected", FACTS)
