"""Measured layers become the planner's problem, and its decision what a record says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transect.planner.memory import Decision
from transect.planner.memory_problem import LayerMemory, MemoryProblem, extra_seconds, peak_bytes
from transect.training.memory._offload import LEAST
from transect.training.memory.offload_file import window_bytes
from transect.training.optimisers import OPTIMISERS
from transect.training.workloads import Parameters

_MARGIN = 16
# The limit counts what is given, not what is touched: arenas of the threads that write and read grow in
# steps, and blocks wait for their last reader. 1 MiB was refused where 2 MiB seemed left.
_UNTOUCHED = 1 << 21


def problem_of(costs: Mapping[str, Any], parameters: Parameters, budget: int, *, overlap: bool) -> MemoryProblem:
    """Return the problem of what `payloads.memory` measured.

    Of the budget, gradients, the optimiser's states, what libraries keep for these layers, 2 MiB and a
    sixteenth are not for activations.
    """
    states = 1 + OPTIMISERS.get(parameters.optimiser).live_states(parameters)
    return MemoryProblem(
        layers=tuple(LayerMemory(**{**layer, "saved": tuple(layer["saved"])}) for layer in costs["layers"]),
        sizes=tuple(costs["sizes"]),
        budget=budget - budget // _MARGIN - _UNTOUCHED - states * costs["gradient_bytes"] - costs["library_bytes"],
        window=window_bytes(budget),
        write_s_per_byte=costs["write_s_per_byte"],
        read_s_per_byte=costs["read_s_per_byte"],
        handling_s=costs["handling_s"],
        overlap=overlap,
        smallest=LEAST,
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
