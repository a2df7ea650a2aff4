"""The export stage: a trained model to ONNX, checked against its framework."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums, data_checksums, need


@RUNNERS.register("export")
class Export(OneProcess):
    """Runs `transect.stages.export.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process in the exporter's environment."""
        data, weights = need(job, "data"), need(job, "weights") / "weights.npz"
        arguments = ("--spec", job.spec_file, "--weights", weights, "--data", data)
        return job.module("transect.stages.export.worker", *arguments, "--out", job.folder)

    def inputs(self, job: Job) -> list[str]:
        """Test data and weights."""
        return [*data_checksums(job), *checksums(job.input("weights") / "weights.npz")]
