"""What the baselines are given instead of ONNX graphs: a workload of transect, its weights, how it is trained."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from engines import BadInput, Skip
from plan import Plan, Role

_OPTIMISERS = ("sgd", "momentum", "nesterov", "adamw")


def read_model(path: str) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the model of the workload that `{"workload", "weights"}` names, and its arrays by neutral name.

    Raises BadInput naming the file, before a framework is imported, which takes seconds.
    """
    from transect.training.workloads import WORKLOADS, model_of

    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
        with np.load(told["weights"]) as file:
            return model_of(WORKLOADS.get(told["workload"])), dict(file)
    except Exception as error:
        raise BadInput(f'{path}: expected {{"workload", "weights"}}: {type(error).__name__}: {error}') from error


@dataclass(frozen=True)
class StepWorkload:
    """A workload by its name, and how it is trained."""

    name: str
    optimiser: str
    loss: str


def read_step_workload(plan: Plan) -> StepWorkload:
    """Read `workload.json` of a step's folder, as the stage that exports it writes it.

    Raises Skip for what cannot be done without the step's graphs.
    """
    if seed := next(plan.of(Role.SEED), None):
        raise Skip(f"{seed.name}: the step draws from a seed, which only its own graphs can")
    if anchor := next((entry.name for entry in plan.of(Role.STATE) if entry.name.startswith("anchor.")), None):
        raise Skip(f"state '{anchor}': this runner has no proximal term")
    file = Path(plan.text(Role.STEP_FOLDER)) / "workload.json"
    told = json.loads(file.read_text(encoding="utf-8"))
    optimiser, loss = told["optimiser"], told["parameters"].get("loss", "cross-entropy")
    if optimiser not in _OPTIMISERS or loss not in ("cross-entropy", "mse"):
        raise Skip(f"optimiser '{optimiser}' and loss '{loss}': this runner has {', '.join(_OPTIMISERS)}")
    return StepWorkload(told["workload"], optimiser, loss)
