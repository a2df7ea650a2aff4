"""The infer stage: a runtime executes an exported model through the runner contract."""

from __future__ import annotations

from transect.domain.axes.infer import InferCell
from transect.engine.job import Job, Result, cell_of, result_from
from transect.engine.stage_helpers import StageRunner, need
from transect.engine.turns import Turns
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.runtimes.infer import conclude
from transect.runtimes.prepare import prepare_run

# Medians of turns of 0.05 s spread no less; and the times of all calls are memory of the program, whose peak counts.
TURN_S = 0.02


class InferRunner(StageRunner):
    """Starts the runtime's program itself: what surrounds it is done here, without a process more."""

    def prepare(self, job: Job) -> tuple[str, Request]:
        """One process, limited to the cell's threads."""
        beside = {role: need(job, role) for role in ("weights", "data") if role in job.spec["inputs"]}
        if "weights" in beside:
            beside["weights"] /= "weights.npz"
        wrap, variables = job.wrap()
        command = prepare_run(job.spec, cell_of(job, InferCell), need(job, "export"), beside, job.folder, job.python)
        return "plain", Request(command=command, threads=job.cell.threads, bin=job.bin, wrap=wrap, variables=variables)

    def turns(self, job: Job) -> Turns | None:
        """One call after another takes turns; an offered load has its own times."""
        if cell_of(job, InferCell).load is not None:
            return None
        return Turns(connections=1, seconds=TURN_S, least=job.spec.get("limits", {}).get("min_runs", 0))

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
                turns=job.turns,
            )
        )
