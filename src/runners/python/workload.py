"""What the baselines are given instead of ONNX graphs: a workload of transect, its weights, how it is trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from engines import Skip
from plan import Plan, Role

_OPTIMISERS = ("sgd", "momentum", "nesterov", "adamw")


def read_model(path: str) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the model of the workload that `{"workload", "weights"}` names, and its arrays by neutral name."""
    from transect.training.own_workload import define_from
    from transect.training.workloads import WORKLOADS, model_of

    told = json.loads(Path(path).read_text(encoding="utf-8"))
    define_from(told)
    with np.load(told["weights"]) as file:
        return model_of(WORKLOADS.get(told["workload"])), dict(file)


def read_step_workload(plan: Plan) -> tuple[str, str, str]:
    """Return workload, optimiser and loss of a step, from its folder's `workload.json`.

    Raises Skip for what cannot be done without the step's graphs.
    """
    if seed := next(plan.of(Role.SEED), None):
        raise Skip(f"{seed.name}: the step draws from a seed, which only its own graphs can")
    if anchor := next((entry.name for entry in plan.of(Role.STATE) if entry.name.startswith("anchor.")), None):
        raise Skip(f"state '{anchor}': this runner has no proximal term")
    file = Path(plan.text(Role.STEP_FOLDER)) / "workload.json"
    told = json.loads(file.read_text(encoding="utf-8"))
    optimiser, loss = told["optimiser"], told["parameters"].get("loss", "cross-entropy")
    if told.get("own_loss"):
        raise Skip("the loss is a function of the study's own, which only the step's graphs have")
    if told["parameters"].get("weight_decay") and told["parameters"].get("decay", "all") != "all":
        raise Skip(f"decay '{told['parameters']['decay']}': this runner has one group of parameters")
    if smoothing := told["parameters"].get("label_smoothing"):
        raise Skip(f"label_smoothing {smoothing:g}: this runner has none")
    if optimiser not in _OPTIMISERS or loss not in ("cross-entropy", "mse"):
        raise Skip(f"optimiser '{optimiser}' and loss '{loss}': this runner has {', '.join(_OPTIMISERS)}")
    return told["workload"], optimiser, loss
