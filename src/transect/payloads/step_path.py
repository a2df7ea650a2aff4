"""What PyTorch computes in float64 of a retraining, exactly or perturbed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transect.domain.precisions import PRECISIONS
from transect.training.distance import weights_distance
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.models import Model
from transect.training.tolerance import PERTURBED_RUNS, Tolerance, loss_rounding, tolerance_of
from transect.training.workloads import Parameters

_PROBED_ERROR = 1e-3

# Batches of which the gradient's rounding is measured.
_ROUNDED_BATCHES = 3
# Test samples that are predicted at once.
_AT_ONCE = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """A retraining: `rows` (steps, micro-batches, batch) of `x` and `y`, a rate for each step.

    `weights` are those of the base model, by neutral name.
    """

    model: Model
    parameters: Parameters
    weights: Mapping[str, np.ndarray]
    x: np.ndarray
    y: np.ndarray
    rows: np.ndarray
    rates: np.ndarray
    clip: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Followed:
    """The loss of each step before its update, (steps,), and all weights at the end."""

    loss: np.ndarray
    weights: dict[str, np.ndarray]


def trainer_of(model: Model, parameters: Parameters, weights: Mapping[str, np.ndarray], precision: str) -> Any:
    """Return torch's trainer on one CPU thread, so that the same numbers come again."""
    plan = ModelPlan(
        model=model,
        parameters=parameters,
        weights=dict(weights),
        batch=parameters.batch,
        precision=precision,
        device="cpu",
        threads=1,
    )
    return FRAMEWORKS.get("torch").trainer(plan)


def score(model: Model, trainer: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Return the mean score of the samples."""
    total = 0.0
    for start in range(0, len(y), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        total += model.score_sum(trainer.predict(x[part]), y[part])
    return total / len(y)


def follow(
    course: Course, unit: float = 0.0, noise: float = 0.0, seed: int = 0, rounding: Sequence[Any] = ()
) -> Followed:
    """Train in float64; stored weights err by `unit`, sums and gradients by `noise`, relatively.

    Each parameter's gradient errs also by `unit` times its `rounding`, as it is.

    The gradient of a step is the mean of its micro-batches', its loss the mean of theirs. It ends
    where the loss is no longer finite: the rest is NaN.
    """
    import torch

    torch.manual_seed(seed)
    trainer = trainer_of(course.model, course.parameters, course.weights, "fp64")
    if noise:
        trainer.wrap(_Erring(trainer.model, unit))
    losses = np.full(len(course.rows), np.nan)
    for step, batches in enumerate(course.rows):
        kept = _perturb_weights(trainer.parameters, unit, noise) if noise else []
        losses[step] = _accumulate(trainer, [(course.x[rows], course.y[rows]) for rows in batches])
        if not np.isfinite(losses[step]):
            break
        with torch.no_grad():
            for parameter, before in zip(trainer.parameters, kept, strict=False):
                parameter.copy_(before)
                parameter.grad *= 1 + noise * _normal(parameter)
            for parameter, errs in zip(trainer.parameters, rounding, strict=False):
                # Nothing is rounded where nothing is added: no row of this batch reaches the number.
                parameter.grad += unit * errs * _normal(parameter) * (parameter.grad != 0)
        if course.clip is not None:
            torch.nn.utils.clip_grad_norm_(trainer.parameters, course.clip)
        trainer.update(float(course.rates[step]))
    return Followed(loss=losses, weights=trainer.weights())


@dataclass(frozen=True, slots=True)
class _Erring:
    """The model, but the loss's gradient at its outputs errs by u as it is.

    That is a difference of numbers up to 1, such as a probability and 1 or 0, divided by the rows: where
    it nearly vanishes its rounding does not. Most rules leave what follows from that as small; AdamW
    divides by it, so that a weight with no other gradient moves by a whole learning rate.
    """

    model: Any
    unit: float

    def __call__(self, x: Any) -> Any:
        outputs = self.model(x)
        outputs.register_hook(lambda gradient: gradient + self.unit / len(x) * _normal(gradient))
        return outputs


def _normal(like: Any) -> Any:
    """Draw in float32, which takes a fraction of the time: that numbers are coarser changes nothing."""
    import torch

    return torch.randn(like.shape, dtype=torch.float32).to(like.dtype)


def _perturb_weights(parameters: Sequence[Any], unit: float, noise: float) -> list[Any]:
    """Let weights err as stored ones do, then as sums computed with them do; return the stored ones."""
    import torch

    kept = []
    with torch.no_grad():
        for parameter in parameters:
            parameter *= 1 + unit * _normal(parameter)
            kept.append(parameter.clone())
            parameter *= 1 + noise * _normal(parameter)
    return kept


def _accumulate(trainer: Any, batches: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Leave the mean gradient of the micro-batches in the trainer; return the mean loss."""
    losses, total = [], None
    for x, y in batches:
        losses.append(trainer.forward_backward(*trainer.batch(x, y)))
        if len(batches) > 1:
            gradients = [parameter.grad.clone() for parameter in trainer.parameters]
            total = gradients if total is None else [a + b for a, b in zip(total, gradients, strict=True)]
    for parameter, gradient in zip(trainer.parameters, total or (), strict=False):
        parameter.grad = gradient / len(batches)
    return float(np.mean(losses))


def tolerance(course: Course, exact: Followed, precision: str = "fp32") -> Tolerance:
    """Run the course perturbed a few times beside its `exact` path."""
    unit = PRECISIONS[precision].unit_roundoff
    noise = unit * np.sqrt(course.model.longest_sum(course.rows.shape[2]))
    return tolerance_of(exact, _perturbed(course, unit, noise), noise, loss_rounding(course.parameters.loss, unit))


def rate_error_seen(course: Course, exact: Followed, allowed: Tolerance) -> float | None:
    """Return the relative error of the learning rate that just leaves the tolerance, to first order.

    None where the tried error changes nothing that could be seen.
    """
    wrong = follow(replace(course, rates=course.rates * (1 + _PROBED_ERROR)))
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.abs(wrong.loss - exact.loss) / allowed.loss
    moved = weights_distance(wrong.weights, exact.weights) / allowed.weights
    finite = [share for share in (*shares, moved) if np.isfinite(share)]
    most = max(finite, default=0.0)
    return float(_PROBED_ERROR / most) if most else None


def _perturbed(course: Course, unit: float, noise: float) -> Iterator[Followed]:
    rounding = _gradient_rounding(course)
    return (follow(course, unit, noise, seed, rounding) for seed in range(1, 1 + PERTURBED_RUNS))


def _gradient_rounding(course: Course) -> list[Any]:
    """Return by how much the base's float32 gradient errs, over float32's roundoff, for each parameter.

    As `reference_path.gradient_rounding` does: what cancels, as the gradient of a key's bias in attention, errs by more
    than a share of itself, and Adam makes it as large as any other.
    """
    import torch

    found = []
    for precision in ("fp64", "fp32"):
        trainer, gradients = trainer_of(course.model, course.parameters, course.weights, precision), []
        for rows in course.rows[:_ROUNDED_BATCHES, 0]:
            trainer.forward_backward(*trainer.batch(course.x[rows], course.y[rows]))
            gradients.append([parameter.grad.double() for parameter in trainer.parameters])
        # By parameter, of all batches.
        found.append([torch.stack(several) for several in zip(*gradients, strict=True)])
    unit = PRECISIONS["fp32"].unit_roundoff
    return [(exact - rounded).abs().amax(dim=0) / unit for exact, rounded in zip(*found, strict=True)]


def retraining_rates(workload_rate: float, rule: Mapping[str, Any], steps: int) -> np.ndarray:
    """Return float64 (steps,): `workload_rate` is the full one, `rule` the fields of a RateRule.

    A warm-up of w steps has the rates 1/w, 2/w, … of the full one. What follows stays, or goes to
    `end` along half a period of a cosine (I. Loshchilov and F. Hutter, "SGDR", arXiv:1608.03983,
    equation 5, without restarts).
    """
    warm = round(rule["warmup"] * steps)
    factors = np.full(steps, float(rule["factor"]))
    factors[:warm] *= np.arange(1, warm + 1) / max(1, warm)
    if rule["end"] is not None:
        done = np.arange(steps - warm) / max(1, steps - warm - 1)
        span = rule["factor"] - rule["end"]
        factors[warm:] = rule["end"] + span * (1 + np.cos(np.pi * done)) / 2
    return workload_rate * factors
