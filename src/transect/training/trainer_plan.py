"""The input of a trainer in another language: one JSON file, see docs/trainer-contract.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.files import write_atomic
from transect.domain.precisions import find_precision
from transect.training.frameworks import RankFiles
from transect.training.inputs import SYNTHETIC_BATCHES, draw_batch
from transect.training.layered import LayeredModel
from transect.training.layers import Branches, Layer, Residual
from transect.training.learning_rates import learning_rates
from transect.training.models import Model
from transect.training.optimisers import OPTIMISERS
from transect.training.raw_arrays import describe_npy, describe_npz, write_array
from transect.training.restarts import describe_states
from transect.training.strategies import STRATEGIES
from transect.training.support import program_settings
from transect.training.workloads import WORKLOADS, Parameters, model_of

PLAN_FORMAT = 1


def _layer(layer: Layer) -> dict[str, Any]:
    if isinstance(layer, Residual):
        return {
            "kind": "Residual",
            "body": [_layer(inner) for inner in layer.body],
            "shortcut": [_layer(inner) for inner in layer.shortcut],
        }
    if isinstance(layer, Branches):
        return {"kind": "Branches", "branches": [[_layer(inner) for inner in branch] for branch in layer.branches]}
    return {"kind": type(layer).__name__, **asdict(layer)}


def _model(model: Model) -> dict[str, Any]:
    layers = [_layer(layer) for layer in model.layers] if isinstance(model, LayeredModel) else None
    return {
        "kind": type(model).__name__,
        "sample": list(model.sample),
        "inputs": model.inputs,
        "score": model.score,
        "layers": layers,
    }


def _synthetic(cell: TrainCell, model: Model, steps: int, out: Path) -> dict[str, Any]:
    """Write the batches of the synthetic twin, which only numpy can draw; return where they are."""
    dtype = np.dtype(find_precision(cell.precision).array)
    drawn = [
        draw_batch(model, cell.repeat, number, range(cell.batch), dtype)
        for number in range(min(steps, SYNTHETIC_BATCHES))
    ]
    x, y = (np.stack(arrays) for arrays in zip(*drawn, strict=True))
    return {
        "x_synthetic": write_array(out / "synthetic-x.bin", x),
        "y_synthetic": write_array(out / "synthetic-y.bin", y),
    }


def write_trainer_plan(
    cell: TrainCell, parameters: Parameters, data: Path, files: RankFiles, restarts: Path | None = None
) -> dict[str, Any]:
    """Write the plan and return it; it points into files of other stages and copies nothing of them.

    `restarts` is the reference's file of states. Raises ValueError when a file cannot be read by
    other languages, BadInput when workers come and go more often than there are steps.
    """
    model = model_of(WORKLOADS.get(str(cell.workload)))
    strategy = STRATEGIES.get(cell.strategy)
    layout = strategy.layout(cell)
    start = describe_npz(data / f"start-{cell.repeat}.npz")
    order = start.pop("order")
    arrays = describe_npz(data / "data.npz")
    if "x_train" not in arrays:
        # Images as bytes: a sample is (x / 255 - mean) / deviation, per channel.
        arrays |= {part: describe_npy(data / f"{part}.npy") for part in ("x_train", "x_test")}
    epochs, samples = order["shape"]
    steps_per_epoch = samples // cell.batch
    steps = epochs * steps_per_epoch
    layout.check_steps(steps)
    rates = learning_rates(parameters, cell.learning_rate_rule, cell.batch, steps)
    checked = parameters.reference_steps
    states = OPTIMISERS.get(parameters.optimiser).states
    if cell.input == "synthetic":
        arrays |= _synthetic(cell, model, steps_per_epoch, files.out)
    plan = {
        "format": PLAN_FORMAT,
        "out": str(files.out),
        "cell": cell.model_dump(mode="json"),
        "parameters": parameters.model_dump(mode="json"),
        "options": program_settings(strategy, cell),
        "replicas": layout.replicas,
        "model_parts": layout.model_parts,
        "servers": layout.servers,
        "workers": list(layout.workers),
        "steps_per_epoch": steps_per_epoch,
        "steps": steps,
        "checked_steps": steps if checked is None else min(checked, steps),
        "model": _model(model),
        "weights": [
            {"name": weight.name, "trained": weight.trained, **start[weight.name]} for weight in model.weight_shapes()
        ],
        "order": order,
        "learning_rates": write_array(files.out / "learning-rates.bin", rates),
        "data": arrays,
        "restarts": [] if restarts is None else describe_states(restarts, states),
    }
    write_atomic(files.plan, json.dumps(plan, indent=1) + "\n")
    return plan
