"""The memory stage: layers are measured in the framework's environment, and decided upon here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from transect.domain.axes.train import MEMORY_PLAN, MemoryCell
from transect.domain.files import write_atomic
from transect.domain.record import Cause
from transect.engine.job import Job, Result, cell_of
from transect.engine.stage_helpers import OneProcess, cores
from transect.launch.processes import Outcome
from transect.planner.memory import Decision, NoMemory, decide
from transect.planner.memory_problem import LayerMemory, MemoryProblem, extra_seconds, peak_bytes
from transect.training.memory._offload import MIN_COUNT
from transect.training.memory.offload_file import window_bytes
from transect.training.optimisers import arrays_kept
from transect.training.workloads import Parameters


class MemoryRunner(OneProcess):
    """One process that measures, then the solver."""

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


# Of the budget: blocks that malloc rounds up, and what a layer alone does not show.
_MARGIN = 16
# The limit counts what is given, not what is touched: arenas of the threads that write and read grow in
# steps, and blocks wait for their last reader. 1 MiB was refused where 2 MiB seemed left.
_UNTOUCHED = 1 << 21


def problem_of(costs: Mapping[str, Any], parameters: Parameters, budget: int, *, overlap: bool) -> MemoryProblem:
    """Return the problem of what `payloads.memory` measured.

    Of the budget, gradients, the optimiser's states, what libraries keep for these layers, 2 MiB and a
    sixteenth are not for activations.
    """
    states = 1 + arrays_kept(parameters)
    return MemoryProblem(
        layers=tuple(LayerMemory(**{**layer, "saved": tuple(layer["saved"])}) for layer in costs["layers"]),
        sizes=tuple(costs["sizes"]),
        budget=budget - budget // _MARGIN - _UNTOUCHED - states * costs["gradient_bytes"] - costs["library_bytes"],
        window=window_bytes(budget),
        write_s_per_byte=costs["write_s_per_byte"],
        read_s_per_byte=costs["read_s_per_byte"],
        handling_s=costs["handling_s"],
        overlap=overlap,
        smallest=MIN_COUNT,
    )


def decision_facts(problem: MemoryProblem, decision: Decision) -> dict[str, Any]:
    """Return runs and each layer's action, with what the solver expects of it and of plain training."""
    plain = [("keep", 0, len(problem.layers))]
    actions = [action for action, first, last in decision.runs for _ in range(first, last)]
    return {
        "runs": [list(run) for run in decision.runs],
        "actions": {layer.name: action for layer, action in zip(problem.layers, actions, strict=True)},
        "proved_optimal": decision.proved,
        "overlap": problem.overlap,
        "activation_budget": problem.budget,
        "window_bytes": problem.window,
        "expected_extra_s": extra_seconds(problem, decision.runs),
        "expected_bytes": decision.peak_bytes,
        "plain_bytes": peak_bytes(problem, plain)[0],
        "plain_s": sum(layer.forward_s + layer.backward_s for layer in problem.layers),
    }
