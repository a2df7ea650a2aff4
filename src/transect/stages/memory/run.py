"""The memory stage: layers are measured in the framework's environment, and decided upon here."""

from __future__ import annotations

import json

from transect.domain.axes.train import MEMORY_PLAN, MemoryCell
from transect.domain.files import write_atomic
from transect.domain.record import Cause
from transect.engine.job import Job, Result, cell_of
from transect.engine.stage_helpers import OneProcess, cores
from transect.launch.processes import Outcome
from transect.planner.memory import NoMemory, decide
from transect.stages.memory.result import decision_facts, problem_of
from transect.training.memory._block_cache import BLOCK_CACHE
from transect.training.workloads import Parameters


class MemoryRunner(OneProcess):
    """One process that measures, then the solver."""

    def through(self, job: Job) -> tuple[str, ...]:
        """What keeps the blocks of large tensors."""
        return (BLOCK_CACHE,)

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Solve; a budget that no choice fits is not supported, with the layer that does not fit."""
        result = super().collect(job, outcome)
        if outcome.code or "costs" not in result.details:
            return result
        costs = result.details["costs"]
        cell = cell_of(job, MemoryCell)
        parameters = Parameters.model_validate(job.spec["parameters"])
        assert cell.memory_budget is not None
        overlap = cell.threads * cell.together < cores(job)
        problem = problem_of(costs, parameters, cell.memory_budget, overlap=overlap)
        decision = decide(problem)
        if isinstance(decision, NoMemory):
            found = Result.skipped(Cause.UNSUPPORTED, decision.reason)
            found.details = result.details
            return found
        plan = {"runs": decision.runs, "window_bytes": problem.window}
        write_atomic(job.folder / MEMORY_PLAN, json.dumps(plan) + "\n")
        result.details |= decision_facts(problem, decision)
        return result
