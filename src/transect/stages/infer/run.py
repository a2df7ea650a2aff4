"""The infer stage: a runtime executes an exported model through the runner contract."""

from __future__ import annotations

from transect.domain.axes.infer import InferCell
from transect.engine.job import Job, Result, cell_of, result_from
from transect.engine.stage_helpers import StageRunner, need
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.runtimes.infer import conclude
from transect.runtimes.prepare import prepare_run


class InferRunner(StageRunner):
    """Starts the runtime's program itself: what surrounds it is done here, without a process more."""

    def prepare(self, job: Job) -> tuple[str, Request]:
        """One process, limited to the cell's threads."""
        weights = need(job, "weights") / "weights.npz" if "weights" in job.spec["inputs"] else None
        wrap, variables = job.wrap()
        command = prepare_run(job.spec, cell_of(job, InferCell), need(job, "export"), weights, job.folder, job.python)
        return "plain", Request(command=command, threads=job.cell.threads, bin=job.bin, wrap=wrap, variables=variables)

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Compare the outputs with the framework's; a time stands only where they agree."""
        text = job.log.read_text(encoding="utf-8", errors="replace") if job.log.exists() else ""
        return result_from(
            conclude(
                cell_of(job, InferCell),
                job.input("export"),
                job.folder,
                outcome.code,
                python=job.python,
                log=text,
                started_ns=outcome.started_ns,
            )
        )
