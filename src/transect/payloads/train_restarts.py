"""After its run a trainer is restarted from states of the reference.

It is the same trainer, in the same process with the same ranks: what has gone wrong in it during the
run is still in it. Nothing here is timed, and what was measured is written before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from transect.training.frameworks import ModelPlan, ResumableTrainer, Trainer
from transect.training.inputs import Batches
from transect.training.optimisers import OPTIMISERS
from transect.training.restarts import read_states
from transect.training.strategies import Strategy


def restart(
    path: Path | None, plan: ModelPlan, trainer: Trainer, strategy: Strategy, batches: Batches, rates: np.ndarray
) -> dict[str, Any]:
    """Return this rank's `loss` of each restart's steps, or the reason why it was `not_checkable`.

    `rates` are those of the whole training. All ranks must call it.
    """
    if path is None:
        return {"not_checkable": "the cell has no reference"}
    if not isinstance(trainer, ResumableTrainer):
        return {"not_checkable": f"{type(trainer).__name__} cannot go on from a given state: it has no `resume`"}
    trained = [weight.name for weight in plan.model.weight_shapes() if weight.trained]
    states = OPTIMISERS.get(plan.parameters.optimiser).states
    losses = []
    for first, count, state in read_states(path, plan.weights, trained, states):
        trainer.resume(state)
        steps = zip(batches.steps(first, count), rates[first : first + count].tolist(), strict=True)
        losses.append([strategy.step(trainer, x, y, rate).loss for (x, y), rate in steps])
    return {"loss": losses}
