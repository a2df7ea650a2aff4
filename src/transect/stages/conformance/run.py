"""The conformance stage: ONNX's operator tests through the runner contract."""

from __future__ import annotations

import json
import sys

from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import OneProcess, checksums, need
from transect.onnx_models.node_tests import ARCHIVE


@RUNNERS.register("conformance")
class Conformance(OneProcess):
    """Runs `transect.stages.conformance.worker`, which starts the runner, and again after a crash."""

    in_environment = False

    def command(self, job: Job) -> list[str]:
        """One process of the driver; the runner is told its own modules or container."""
        wrap, _ = job.wrap()
        arguments = ["--spec", job.spec_file, "--tests", need(job, "tests"), "--out", job.folder]
        return [
            sys.executable,
            "-m",
            "transect.stages.conformance.worker",
            *map(str, arguments),
            "--python",
            job.python,
            "--wrap",
            json.dumps(wrap),
        ]

    def inputs(self, job: Job) -> list[str]:
        """The tests."""
        return checksums(job.input("tests") / ARCHIVE)
