"""The path that every (framework, strategy, ranks) must follow, and how far it may stray.

The reference is numpy in float64 in one process. It cuts each batch in as many parts as the cell
has replicas, and these in micro-batches, where that matters: batch norm normalises each by its own
statistics, and a sum of the parts' gradients is not their mean. The loss of a step is the mean over the
parts; the running statistics are those of the first part, as rank 0 has them.

The tolerance of a precision is not guessed but measured on the same problem, by Monte Carlo
arithmetic (D. S. Parker, UCLA CSD-970002, 1997): the float64 trainer runs again a few times. In every
step it computes with weights that are multiplied by 1 + e z, so that every sum of products errs as if it
were rounded; every gradient element is multiplied by 1 + e z; and every weight is kept multiplied by
1 + u z, because it is stored rounded, and so is every average of weights. z is drawn from a standard normal each time and

    e = u sqrt(K),  u the unit roundoff of the precision, K the longest sum in the model

because a sum of K rounded terms errs by about u sqrt(K) relative to its terms when roundings are
independent (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", section 2.8). The
dynamics of training then amplify these perturbations exactly as they amplify roundings. At step t
the tolerance is SAFETY times the largest deviation of any perturbed run up to t, plus SAFETY times
e times the loss. A cross-entropy gets SAFETY times the roundoff of what computes it besides, float32's at
most: where a class is certain it is the logarithm of a sum that is 1 and a little more, which is rounded as
1 is. A wrong update rule deviates by orders of magnitude more. The final weights, all of them in one vector,
are held to the same rule in the Euclidean norm, without what a cross-entropy gets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.train import ReferenceCell
from transect.domain.precisions import PRECISIONS
from transect.payloads.reference_path import Path64, Problem, gradient_rounding, trajectory, with_rate
from transect.training.distance import weights_distance
from transect.training.frameworks import FRAMEWORKS, ModelPlan, TrainingState
from transect.training.inputs import load_data, load_weights
from transect.training.optimisers import OPTIMISERS
from transect.training.restarts import RESTARTS, rounded, state_arrays
from transect.training.sharpness import SHARP, blind_from
from transect.training.tolerance import PERTURBED_RUNS, Tolerance, loss_rounding, rule, tolerance_of
from transect.training.workloads import WORKLOADS, Parameters, model_of

PROBED_ERROR = 1e-3


def _problem(spec: dict[str, Any], folder: Path) -> Problem:
    cell = ReferenceCell.of(**spec["cell"])
    model = model_of(WORKLOADS.get(cell.workload), folder)
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
    problem = replace(problem, rounding=gradient_rounding(problem))
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
    arrays = {"loss": loss} | {f"tolerance_{name}": tolerance.loss for name, tolerance in tolerances.items()}
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
            "largest_tolerance": {p: _finite(float(tolerance.loss.max())) for p, tolerance in tolerances.items()},
            "weights_tolerance": {p: _finite(tolerance.weights) for p, tolerance in tolerances.items()},
            "not_checkable_from": {p: blind_from(loss, tolerance.loss) for p, tolerance in tolerances.items()},
            "restarts": restarts["first"].tolist(),
        },
        "libraries": FRAMEWORKS.get("numpy").libraries(),
    }


# Losses of a restart: the second sees the first update, the third what momentum does.
LENGTH = 4
_POINTS = 3
# Of all points together; one is kept, however large.
_MAX_BYTES = 2**27


@dataclass(frozen=True, kw_only=True, slots=True)
class _Restart:
    """`effect` is what the updates do to the losses, `tolerance` what each precision may stray."""

    first: int
    state: TrainingState
    loss: np.ndarray
    effect: np.ndarray
    tolerance: dict[str, np.ndarray]

    def sharp(self, precision: str) -> bool:
        return bool((self.tolerance[precision] <= SHARP * self.effect).any())


def even_points(problem: Problem) -> list[int]:
    """Return the steps of restarts, as many as the path and their bytes allow."""
    if problem.steps < 2 * LENGTH:
        return [0]
    plan = problem.plan
    arrays = 1 + OPTIMISERS.get(plan.parameters.optimiser).states
    size = 4 * arrays * sum(array.size for array in plan.weights.values())
    count = max(1, min(_POINTS, problem.steps // (2 * LENGTH), _MAX_BYTES // size))
    last = problem.steps - LENGTH
    return [round(last * number / count) for number in range(1, count + 1)]


def restart_arrays(problem: Problem, exact: Path64, tolerances: Mapping[str, Tolerance]) -> dict[str, np.ndarray]:
    """Return the content of the file of restarts; `exact` has kept the states of `even_points`."""
    states = dict(exact.states)
    blind = [blind_from(exact.loss, tolerance.loss) for tolerance in tolerances.values()]
    first_blind = min((step for step in blind if step is not None), default=None)
    # A point less than a restart away shows the same; a short path has no room for another.
    if (
        first_blind is not None
        and first_blind <= max(states) - LENGTH
        and all(abs(first_blind - first) >= LENGTH for first in states)
    ):
        again = trajectory(replace(problem, steps=first_blind + 1), keep=[first_blind])
        states |= again.states
    every = [_restart(problem, first, states[first], exact, tolerances) for first in sorted(states)]
    # A reference whose loss overflows from there on says nothing.
    restarts = [restart for restart in every if np.isfinite(restart.loss).all()]
    arrays = {
        "first": np.array([restart.first for restart in restarts], np.int64),
        "count": np.array([len(restart.loss) for restart in restarts], np.int64),
        "loss": _padded([restart.loss for restart in restarts]),
    }
    for name in tolerances:
        arrays[f"tolerance_{name}"] = _padded([restart.tolerance[name] for restart in restarts])
        arrays[f"sharp_{name}"] = np.array([restart.sharp(name) for restart in restarts], bool)
    for restart in restarts:
        if restart.first:
            arrays |= state_arrays(restart.first, restart.state)
    return arrays


def _restart(
    problem: Problem, first: int, state: TrainingState, exact: Path64, tolerances: Mapping[str, Tolerance]
) -> _Restart:
    """Follow the reference from a state. What is at the beginning of the path is known already."""
    if first == 0:
        from_here = replace(problem, steps=min(LENGTH, problem.steps))
        loss = exact.loss[: from_here.steps]
        tolerance = {name: limit.loss[: from_here.steps] for name, limit in tolerances.items()}
    else:
        state = rounded(state)
        from_here = replace(problem, first=first, state=state, steps=LENGTH)
        path = trajectory(from_here)
        loss = path.loss
        tolerance = {name: measure_tolerance(from_here, path, name).loss for name in tolerances}
    idle = trajectory(with_rate(from_here, 0.0))
    return _Restart(first=first, state=state, loss=loss, effect=np.abs(loss - idle.loss), tolerance=tolerance)


def _padded(rows: list[np.ndarray]) -> np.ndarray:
    """Return them as one array (restarts, LENGTH); only a path of fewer steps has shorter rows."""
    whole = np.full((len(rows), LENGTH), np.nan)
    for place, row in zip(whole, rows, strict=True):
        place[: len(row)] = row
    return whole


def measure_tolerance(problem: Problem, exact: Path64, precision: str) -> Tolerance:
    """Run the problem perturbed a few times beside its `exact` path."""
    unit = PRECISIONS[precision].unit_roundoff
    noise = unit * np.sqrt(problem.plan.model.longest_sum(problem.cell.batch or 1))
    runs = (trajectory(problem, unit, noise, seed=seed) for seed in range(1, 1 + PERTURBED_RUNS))
    return tolerance_of(exact, runs, noise, loss_rounding(problem.plan.parameters.loss, unit))
