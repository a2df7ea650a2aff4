"""The infer stage: a runtime executes an exported model through the runner contract."""

from __future__ import annotations

from transect.engine.job import Job, Result, result_from
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import checksums, checksums_below, need
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.onnx_models.facts import FACTS, batch_folder
from transect.runtimes.infer import conclude
from transect.runtimes.prepare import prepare_run


@RUNNERS.register("infer")
class Infer:
    """Starts the runner itself: what surrounds it is done here, without a process more."""

    measures = True

    def prepare(self, job: Job) -> tuple[str, Request]:
        """One process, held to the cell's threads."""
        weights = need(job, "weights") / "weights.npz" if "weights" in job.spec["inputs"] else None
        wrap, variables = job.wrap()
        command = prepare_run(job.spec, job.cell, need(job, "export"), weights, job.folder, job.python)
        return "plain", Request(command=command, threads=job.cell.threads, bin=job.bin, wrap=wrap, variables=variables)

    def inputs(self, job: Job) -> list[str]:
        """The model, its inputs and its expected outputs, with their tolerance."""
        # Only dynamic ranges make outputs depend on the batch.
        own = (batch_folder(job.cell.batch),) if job.cell.precision == "int8-dynamic" else ()
        names = ("model.onnx", "inputs", "expected", FACTS, *own)
        taken = checksums_below(job.input("export"), *names)
        if "weights" in job.spec["inputs"]:
            taken += checksums(job.input("weights") / "weights.npz")
        return taken

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Compare the outputs with the framework's; a time stands only where they agree."""
        text = job.log.read_text(encoding="utf-8", errors="replace") if job.log.exists() else ""
        return result_from(
            conclude(
                job.cell,
                job.input("export"),
                job.folder,
                outcome.code,
                python=job.python,
                log=text,
                started_ns=outcome.started_ns,
            )
        )
