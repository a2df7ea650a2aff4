"""The path that every (framework, strategy, ranks) must follow, and how far it may stray.

The reference is numpy in float64 in one process. It cuts each batch in as many parts as the cell
has ranks where that matters: batch norm normalises each part by its own statistics, and a sum of
the parts' gradients is not their mean. The loss of a step is the mean over the parts; the running
statistics are those of the first part, as rank 0 has them.

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

import argparse
import json
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.errors import FAULTS, error_facts
from transect.domain.files import write_atomic
from transect.domain.precisions import PRECISIONS, find_precision
from transect.stages.train.worker import make_batches, score_test
from transect.training.distance import weights_distance
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks.numpy_ import NumpyTrainer
from transect.training.inputs import load_data, load_weights
from transect.training.layout import Share
from transect.training.schedule import learning_rates
from transect.training.workloads import WORKLOADS, Parameters, model_of

__all__ = [
    "PERTURBED_RUNS", "SAFETY", "Path64", "Problem", "main", "rule",
    "trajectory",
]  # fmt: skip

PERTURBED_RUNS = 4
SAFETY = 16.0
PROBED_ERROR = 1e-3

Weights = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What is trained: the cell names workload, batch, parts, rules and input."""

    cell: Cell
    plan: ModelPlan
    data: dict[str, Any]
    folder: Path
    steps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Path64:
    """One run: loss per step, sum of test scores per whole epoch, weights at the end."""

    loss: np.ndarray
    scores: np.ndarray
    weights: Weights


def rule(precision: str, terms: int) -> str:
    """State the tolerance's derivation in one sentence."""
    return (
        f"{SAFETY:g} x the largest deviation of {PERTURBED_RUNS} float64 runs in which every step "
        f"perturbs stored weights by u = {find_precision(precision).unit_roundoff:.1e} ({precision}), and what it "
        f"computes with and its gradients by u sqrt(K), K = {terms}, plus {SAFETY:g} u sqrt(K) times "
        "the loss or weights"
    )


def trajectory(problem: Problem, unit: float, noise: float, seed: int) -> Path64:
    """Train in float64; stored weights err by `unit`, sums and gradients by `noise`, relatively."""
    generator = np.random.default_rng(seed)
    parts = _Parts(problem)
    rule, batch = problem.plan.parameters, problem.cell.batch
    assert batch
    rates = learning_rates(rule, problem.cell.learning_rate_rule, batch, problem.steps)
    first = parts.trainers[0]
    flat, gradient = first.flat_weights, first.flat_gradient
    losses, scores = [], []
    for number, (several, epoch_ends) in enumerate(parts.batches()):
        if number == problem.steps:
            break
        if noise:
            flat *= 1 + unit * generator.standard_normal(flat.size)
            kept = flat.copy()
            flat *= 1 + noise * generator.standard_normal(flat.size)
        parts_of_loss = []
        total = np.zeros_like(gradient)
        for trainer, (x, y) in zip(parts.trainers, several, strict=True):
            if trainer is not first:
                trainer.flat_weights[...] = flat
            parts_of_loss.append(trainer.forward_backward(x, y))
            total += trainer.flat_gradient
        gradient[...] = total if problem.cell.reduce == "sum" else total / len(parts_of_loss)
        losses.append(float(np.mean(parts_of_loss)))
        if noise:
            flat[...] = kept
            gradient *= 1 + noise * generator.standard_normal(gradient.size)
        first.update(rates[number])
        if epoch_ends:
            scores.append(parts.score())
    return Path64(loss=np.array(losses), scores=np.array(scores), weights=first.weights())


class _Parts:
    """One trainer and one share of the batches for each part."""

    def __init__(self, problem: Problem) -> None:
        cell, plan = problem.cell, problem.plan
        self.trainers = [NumpyTrainer(plan) for _ in range(cell.shards)]
        self._model = plan.model
        self._shares = [
            make_batches(cell, plan.model, trainer, problem.data, problem.folder,
                         Share(number, cell.shards))
            for number, trainer in enumerate(self.trainers)
        ]  # fmt: skip

    def batches(self) -> Iterator[tuple[tuple[Any, ...], bool]]:
        """Yield each step's parts, and whether the step is its epoch's last."""
        per_epoch = self._shares[0].steps_per_epoch
        for epochs in zip(*self._shares, strict=True):
            for number, several in enumerate(zip(*epochs, strict=True), 1):
                yield several, number == per_epoch

    def score(self) -> float:
        """Return the sum of the test samples' scores by the first part's model."""
        return score_test(self._model, self.trainers[0].predict, self._shares[0])


def _with_learning_rate(problem: Problem, factor: float) -> Problem:
    parameters = problem.plan.parameters
    changed = parameters.model_copy(update={"learning_rate": parameters.learning_rate * factor})
    return replace(problem, plan=replace(problem.plan, parameters=changed))


def _problem(spec: dict[str, Any], folder: Path) -> Problem:
    cell = Cell.of(**spec["cell"])
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


def _run(spec: dict[str, Any], folder: Path, out: Path) -> dict[str, Any]:
    problem = _problem(spec, folder)
    plan = problem.plan
    exact = trajectory(problem, 0.0, 0.0, 0)
    loss = exact.loss
    if not np.isfinite(loss).all():
        step = int(np.argmin(np.isfinite(loss)))
        message = f"the reference's loss is not finite from step {step}"
        return {"status": "failed", "cause": "diverged", "message": message}
    terms = plan.model.longest_sum(problem.cell.batch or 1)
    # No framework trains in one that the table lacks: its cells are skipped, and need no tolerance.
    precisions = [name for name in spec["precisions"] if name in PRECISIONS]
    arrays, weight_tolerance = {"loss": loss}, {}
    for precision in precisions:
        unit = PRECISIONS[precision].unit_roundoff
        noise = unit * np.sqrt(terms)
        spread, moved = np.zeros_like(loss), 0.0
        for run in range(PERTURBED_RUNS):
            perturbed = trajectory(problem, unit, noise, seed=1 + run)
            # A run that overflows says that anything may happen: no deviation is too large.
            spread = np.maximum(spread, np.nan_to_num(np.abs(perturbed.loss - loss), nan=np.inf))
            distance = weights_distance(perturbed.weights, exact.weights)
            moved = max(moved, np.inf if np.isnan(distance) else distance)
        arrays[f"tolerance_{precision}"] = SAFETY * (
            np.maximum.accumulate(spread) + noise * np.abs(loss)
        )
        weight_tolerance[precision] = float(SAFETY * (moved + noise))
    np.savez(out / "trajectory.npz", **arrays)  # type: ignore[arg-type]
    np.savez(out / "weights.npz", **exact.weights)  # type: ignore[arg-type]
    metrics = [{"name": "final_loss", "value": float(loss[-1])}]
    total = len(problem.data["y_test"])
    if len(exact.scores) and total and problem.cell.input != "synthetic":
        metrics.append({"name": plan.model.score, "value": float(exact.scores[-1] / total)})
    wrong = trajectory(_with_learning_rate(problem, 1 + PROBED_ERROR), 0.0, 0.0, 0)
    finest = min(precisions, key=lambda name: PRECISIONS[name].unit_roundoff)
    sharpest = "fp32" if "fp32" in precisions else finest
    seen = float((np.abs(wrong.loss - loss) / arrays[f"tolerance_{sharpest}"]).max())
    moved = weights_distance(wrong.weights, exact.weights) / weight_tolerance[sharpest]
    return {
        "status": "ok",
        "metrics": metrics,
        "samples": {
            name: {"unit": "1", "file": "trajectory.npz", "key": name, "count": len(loss)}
            for name in arrays
        },
        "details": {
            "longest_sum": terms,
            "steps": problem.steps,
            "parts": problem.cell.shards,
            "rules": {precision: rule(precision, terms) for precision in precisions},
            # How sharp the check is: the learning-rate error that just violates it, to first order.
            f"detects_learning_rate_error_{sharpest.replace('-', '_')}": (
                PROBED_ERROR / max(seen, moved) if max(seen, moved) else None
            ),
            "largest_tolerance": {p: float(arrays[f"tolerance_{p}"].max()) for p in precisions},
            "weights_tolerance": weight_tolerance,
        },
        "libraries": FRAMEWORKS.get("numpy").libraries(),
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the reference of one workload and repeat."""
    parser = argparse.ArgumentParser(description="float64 reference trajectory and tolerances")
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        result = _run(json.loads(given.spec.read_text()), given.data, given.out)
    except FAULTS as error:
        traceback.print_exc()
        result = {"status": "failed", **error_facts(error)}
    write_atomic(given.out / "result.json", json.dumps(result, indent=1))
    return 0 if result["status"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
