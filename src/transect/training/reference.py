"""The path that every (framework, strategy, ranks) must follow, and how far it may stray.

The reference is single-rank numpy in float64. The tolerance of a precision is not guessed but
measured on the same problem, by Monte Carlo arithmetic (D. S. Parker, UCLA CSD-970002, 1997): the
float64 trainer runs again a few times, and in every step every weight is multiplied by 1 + u z
(it is stored rounded) and every gradient element by 1 + e z, z drawn from a standard normal and

    e = u sqrt(K),  u the unit roundoff of the precision, K the longest sum in the model

because a sum of K rounded terms errs by about u sqrt(K) relative to its terms when roundings are
independent (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", section 2.8). The
dynamics of training then amplify these perturbations exactly as they amplify roundings. At step t
the tolerance is SAFETY times the largest deviation of any perturbed run up to t, plus SAFETY times
e times the loss. A wrong update rule deviates by orders of magnitude more.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.files import write_atomic
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks.numpy_ import NumpyTrainer
from transect.training.layers import Conv2d, Layer, Linear
from transect.training.strategies import Place
from transect.training.worker import batch_indices, error_facts, load_start
from transect.training.workloads import WORKLOADS, Parameters

__all__ = ["PERTURBED_RUNS", "SAFETY", "UNIT_ROUNDOFF", "longest_sum", "main", "rule", "trajectory"]

UNIT_ROUNDOFF = {"fp32": 2.0**-24, "fp64": 2.0**-53}
PERTURBED_RUNS = 4
SAFETY = 16.0
PROBED_ERROR = 1e-3


def longest_sum(layers: tuple[Layer, ...], batch: int) -> int:
    """Return the number of terms of the longest sum in a forward or backward pass."""
    longest = batch
    for layer in layers:
        match layer:
            case Linear(inputs, outputs):
                longest = max(longest, inputs, outputs)
            case Conv2d(inputs, outputs, kernel):
                longest = max(longest, inputs * kernel * kernel, outputs * kernel * kernel)
    return longest


def rule(precision: str, terms: int) -> str:
    """State the tolerance's derivation in one sentence."""
    return (
        f"{SAFETY:g} x the largest loss deviation of {PERTURBED_RUNS} float64 runs whose weights "
        f"are perturbed in every step by u = {UNIT_ROUNDOFF[precision]:.1e} ({precision}) and whose "
        f"gradients by u sqrt(K), K = {terms}, plus {SAFETY:g} u sqrt(K) times the loss"
    )


def trajectory(
    plan: ModelPlan, data: dict[str, np.ndarray], unit: float, noise: float, seed: int
) -> tuple[np.ndarray, np.ndarray, NumpyTrainer]:
    """Train in float64 with weights perturbed by `unit` and gradients by `noise`, both relative;
    return loss per step, number of right answers per epoch, and the trainer.
    """
    generator = np.random.default_rng(seed)
    trainer = NumpyTrainer(plan)
    losses, correct = [], []
    for steps in batch_indices(data["order"], plan.parameters.batch, Place()):
        for indices in steps:
            x, y = trainer.batch(data["x_train"][indices], data["y_train"][indices])
            if noise:
                weights = trainer.flat_weights
                weights *= 1 + unit * generator.standard_normal(weights.size)
            losses.append(trainer.forward_backward(x, y))
            if noise:
                gradient = trainer.flat_gradient
                gradient *= 1 + noise * generator.standard_normal(gradient.size)
            trainer.update()
        correct.append(int((trainer.predict(data["x_test"]).argmax(1) == data["y_test"]).sum()))
    return np.array(losses), np.array(correct), trainer


def _with_learning_rate(plan: ModelPlan, factor: float) -> ModelPlan:
    parameters = plan.parameters
    changed = parameters.model_copy(update={"learning_rate": parameters.learning_rate * factor})
    return replace(plan, parameters=changed)


def _run(spec: dict[str, Any], folder: Path, out: Path) -> dict[str, Any]:
    cell = Cell.model_validate(spec["cell"])
    assert cell.workload
    workload = WORKLOADS.get(cell.workload)
    parameters = Parameters.model_validate(spec["parameters"])
    data, weights = load_start(folder, cell.repeat)
    plan = ModelPlan(
        layers=workload.layers,
        parameters=parameters,
        weights=weights,
        precision="fp64",
        device="cpu",
        threads=cell.threads,
    )
    loss, correct, trainer = trajectory(plan, data, 0.0, 0.0, 0)
    if not np.isfinite(loss).all():
        return {
            "status": "failed",
            "cause": "diverged",
            "message": f"the reference's loss is not finite from step {int(np.argmin(np.isfinite(loss)))}",
        }
    terms = longest_sum(workload.layers, parameters.batch)
    arrays = {"loss": loss}
    for precision, unit in UNIT_ROUNDOFF.items():
        noise = unit * np.sqrt(terms)
        spread = np.zeros_like(loss)
        for run in range(PERTURBED_RUNS):
            perturbed = trajectory(plan, data, unit, noise, seed=1 + run)[0]
            spread = np.maximum(spread, np.abs(perturbed - loss))
        arrays[f"tolerance_{precision}"] = SAFETY * (
            np.maximum.accumulate(spread) + noise * np.abs(loss)
        )
    np.savez(out / "trajectory.npz", **arrays)
    np.savez(out / "weights.npz", **trainer.weights())
    total = len(data["y_test"])
    wrong = trajectory(_with_learning_rate(plan, 1 + PROBED_ERROR), data, 0.0, 0.0, 0)[0]
    seen = float((np.abs(wrong - loss) / arrays["tolerance_fp32"]).max())
    return {
        "status": "ok",
        "metrics": [
            {"name": "final_loss", "value": float(loss[-1])},
            {"name": "accuracy", "value": float(correct[-1] / total)},
        ],
        "samples": {
            name: {"unit": "1", "file": "trajectory.npz", "key": name, "count": len(loss)}
            for name in arrays
        },
        "details": {
            "longest_sum": terms,
            "rules": {precision: rule(precision, terms) for precision in UNIT_ROUNDOFF},
            # How sharp the check is: the learning-rate error that just violates it, to first order.
            "detects_learning_rate_error_fp32": PROBED_ERROR / seen if seen else None,
            "largest_tolerance": {p: float(arrays[f"tolerance_{p}"].max()) for p in UNIT_ROUNDOFF},
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
    except Exception as error:
        traceback.print_exc()
        result = {"status": "failed", **error_facts(error)}
    write_atomic(given.out / "result.json", json.dumps(result, indent=1))
    return 0 if result["status"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
