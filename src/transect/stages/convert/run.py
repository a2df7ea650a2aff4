"""The convert stage: an exported model in a lower precision."""

from __future__ import annotations

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums_below, data_checksums, need
from transect.onnx_models.facts import FACTS


@RUNNERS.register("convert")
class Convert(OneProcess):
    """Runs `transect.stages.convert.worker`."""

    def command(self, job: Job) -> list[str]:
        """One process; a trained workload comes with its data."""
        data = ("--data", need(job, "data")) if "data" in job.spec["inputs"] else ()
        arguments = ("--spec", job.spec_file, "--model", need(job, "model"), *data)
        return job.module("transect.stages.convert.worker", *arguments, "--out", job.folder)

    def inputs(self, job: Job) -> list[str]:
        """The file, its costs, what was drawn with it, and the data."""
        data = data_checksums(job) if "data" in job.spec["inputs"] else []
        drawn = () if data else ("inputs", "calibration")
        return [*checksums_below(job.input("model"), "model.onnx", FACTS, *drawn), *data]
