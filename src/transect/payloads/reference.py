"""The path that every (framework, strategy, ranks) must follow, and how far it may stray.

The reference is numpy in float64 in one process. It cuts each batch in as many parts as the cell
has replicas, and these in micro-batches, where that matters: batch norm normalises each by its own
statistics, and a sum of the parts' gradients is not their mean. The loss of a step is the mean over the
parts; the running statistics are those of the first part, as rank 0 has them.

The tolerance of a precision is not guessed but measured on the same problem, by Monte Carlo
arithmetic (D. S. Parker, UCLA CSD-970002, 1997): the float64 trainer runs again a few times. In every
step it computes with weights that are multiplied by 1 + e z, so that every sum of products errs as if it
were rounded; every gradient element is multiplied by 1 + e z; and every weight is kept multiplied by
1 + u z, because it is stored rounded. z is drawn from a standard normal each time and

    e = u sqrt(K),  u the unit roundoff of the precision, K the longest sum in the model

because a sum of K rounded terms errs by about u sqrt(K) relative to its terms when roundings are
independent (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", section 2.8). The
dynamics of training then amplify these perturbations exactly as they amplify roundings. At step t
the tolerance is SAFETY times the largest deviation of any perturbed run up to t, plus SAFETY times
e times the loss. A wrong update rule deviates by orders of magnitude more. The final weights, all of
them in one vector, are held to the same rule in the Euclidean norm.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.train import ReferenceCell
from transect.domain.precisions import PRECISIONS
from transect.payloads.reference_path import Problem, trajectory, with_rate
from transect.payloads.reference_restarts import even_points, measure_tolerance, restart_arrays
from transect.training.distance import weights_distance
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.inputs import load_data, load_weights
from transect.training.restarts import RESTARTS
from transect.training.sharpness import blind_from
from transect.training.tolerance import rule
from transect.training.workloads import WORKLOADS, Parameters, model_of

PROBED_ERROR = 1e-3


def _problem(spec: dict[str, Any], folder: Path) -> Problem:
    cell = ReferenceCell.of(**spec["cell"])
    model = model_of(WORKLOADS.get(cell.workload))
    parameters = Parameters.model_validate(spec["parameters"])
    data, weights = load_data(folder, cell.repeat), load_weights(folder, cell.repeat)
    plan = ModelPlan(
        model=model,
        parameters=parameters,
        weights=weights,
        batch=cell.batch // cell.shards,
        precision="fp64",
        device="cpu",
        threads=cell.threads,
    )
    epochs, samples = data["order"].shape
    steps = epochs * (samples // cell.batch)
    steps = min(parameters.reference_steps or steps, steps)
    return Problem(cell=cell, plan=plan, data=data, folder=folder, steps=steps)


def _finite(value: float) -> float | None:
    """Return a number as JSON has it: of perturbed runs that diverged, none."""
    return value if math.isfinite(value) else None


def reference(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Compute the float64 path of one cell, and how far from it each precision may lie; return the result."""
    problem = _problem(spec, folders["data"])
    plan = problem.plan
    exact = trajectory(problem, keep=even_points(problem))
    loss = exact.loss
    if not np.isfinite(loss).all():
        step = int(np.argmin(np.isfinite(loss)))
        message = f"the reference's loss is not finite from step {step}"
        return {"status": "failed", "cause": "diverged", "message": message}
    terms = plan.model.longest_sum(problem.cell.batch or 1)
    # No framework trains in one that the table lacks: its cells are skipped, and need no tolerance.
    precisions = [name for name in spec["precisions"] if name in PRECISIONS]
    tolerances = {name: measure_tolerance(problem, exact, name) for name in precisions}
    arrays = {"loss": loss} | {f"tolerance_{name}": one.loss for name, one in tolerances.items()}
    restarts = restart_arrays(problem, exact, tolerances)
    np.savez(out / "trajectory.npz", **arrays)  # type: ignore[arg-type]
    np.savez(out / "weights.npz", **exact.weights)  # type: ignore[arg-type]
    np.savez(out / RESTARTS, **restarts)  # type: ignore[arg-type]
    metrics = [{"name": "final_loss", "value": float(loss[-1])}]
    total = len(problem.data["y_test"])
    if len(exact.scores) and total and problem.cell.input != "synthetic":
        metrics.append({"name": plan.model.score, "value": float(exact.scores[-1] / total)})
    wrong = trajectory(with_rate(problem, 1 + PROBED_ERROR))
    finest = min(precisions, key=lambda name: PRECISIONS[name].unit_roundoff)
    sharpest = "fp32" if "fp32" in precisions else finest
    seen = float((np.abs(wrong.loss - loss) / tolerances[sharpest].loss).max())
    moved = weights_distance(wrong.weights, exact.weights) / tolerances[sharpest].weights
    return {
        "status": "ok",
        "metrics": metrics,
        "samples": {name: {"unit": "1", "file": "trajectory.npz", "key": name, "count": len(loss)} for name in arrays},
        "details": {
            "longest_sum": terms,
            "steps": problem.steps,
            "parts": problem.cell.shards,
            "micro_batches": problem.cell.micro_batches,
            "rules": {precision: rule(precision, terms) for precision in precisions},
            # How sharp the check is: the learning-rate error that just violates it, to first order.
            f"detects_learning_rate_error_{sharpest.replace('-', '_')}": (
                _finite(PROBED_ERROR / max(seen, moved)) if max(seen, moved) else None
            ),
            "largest_tolerance": {p: _finite(float(one.loss.max())) for p, one in tolerances.items()},
            "weights_tolerance": {p: _finite(one.weights) for p, one in tolerances.items()},
            "not_checkable_from": {p: blind_from(loss, one.loss) for p, one in tolerances.items()},
            "restarts": restarts["first"].tolist(),
        },
        "libraries": FRAMEWORKS.get("numpy").libraries(),
    }
