"""Whether a loss path and the final weights are PyTorch's, within the tolerance of the step's cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from transect.domain.errors import BadInput
from transect.training.distance import weights_distance


@dataclass(frozen=True, kw_only=True, slots=True)
class Path64:
    """PyTorch's path in float64: `loss` and `tolerance` are (steps,), NaN from where it diverged."""

    loss: np.ndarray
    tolerance: np.ndarray
    weights: dict[str, np.ndarray]
    weights_tolerance: float

    @property
    def diverges(self) -> bool:
        """Whether its own loss is no longer finite."""
        return not bool(np.isfinite(self.loss).all())


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Deviations, absolute and relative to their tolerance; `fault` is empty or says what is wrong."""

    fault: str
    ratios: Mapping[str, float] = field(default_factory=dict)


def read_path(problem: Path) -> Path64:
    """Read `path.npz` of a problem's folder."""
    with np.load(problem / "path.npz") as file:
        return Path64(
            loss=file["loss"],
            tolerance=file["tolerance"],
            weights={n.removeprefix("weights/"): file[n] for n in file.files if n.startswith("weights/")},
            weights_tolerance=float(file["weights_tolerance"]),
        )


def reported_losses(parts: Sequence[tuple[int, Sequence[float]]], steps: int) -> np.ndarray:
    """Return the loss of each step, (steps,), NaN where no record tells it.

    `parts` are first steps and losses. Raises BadInput for more losses than there are steps.
    """
    loss = np.full(steps, np.nan)
    for first, losses in parts:
        if not 0 <= first <= first + len(losses) <= steps:
            raise BadInput(f"{len(losses)} losses reported from step {first} on, expected {steps} steps")
        loss[first : first + len(losses)] = losses
    return loss


def judge(loss: np.ndarray, path: Path64, state: Mapping[str, np.ndarray] | None = None) -> Verdict:
    """Hold losses, and the tensors of a final state where there is one, to the path.

    Steps without a reported loss are not checked, nor those where the path itself is no longer finite;
    a retraining that goes on where PyTorch's diverges has computed something else.
    """
    reported = ~np.isnan(loss)
    checked = reported & np.isfinite(path.loss)
    deviation = np.abs(loss - path.loss)[checked]
    ratios, fault = {}, ""
    if len(deviation):
        shares = _shares(deviation, path.tolerance[checked])
        ratios = {"loss_deviation": float(deviation.max()), "equality_ratio": float(shares.max())}
        if shares.max() > 1:
            place = int(np.flatnonzero(checked)[np.argmax(shares > 1)])
            fault = (
                f"the loss is {loss[place]:.9g} at step {place}, PyTorch's in float64 is "
                f"{path.loss[place]:.9g}, and the tolerance is {path.tolerance[place]:.3g}"
            )
    if state is not None and path.diverges:
        fault = fault or "it trained on where PyTorch's loss in float64 is not finite"
    elif state is not None:
        distance = weights_distance(_named(state, path), path.weights)
        share = float(_shares(np.array([distance]), np.array([path.weights_tolerance]))[0])
        ratios |= {"weights_deviation": distance, "weights_equality_ratio": share}
        if share > 1:
            fault = fault or (
                f"the final weights are {distance:.3g} of their size from PyTorch's in float64, and "
                f"the tolerance is {path.weights_tolerance:.3g}"
            )
    return Verdict(fault=fault, ratios=ratios)


def _shares(deviation: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """Return what share of its tolerance each deviation is: not a number counts as beyond all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(deviation == 0, 0.0, deviation / tolerance)
    return np.nan_to_num(shares, nan=np.inf, posinf=np.inf)


def _named(state: Mapping[str, np.ndarray], path: Path64) -> dict[str, np.ndarray]:
    found = {}
    for name in path.weights:
        if f"model.{name}" not in state:
            raise BadInput(f"the final state has no tensor 'model.{name}'")
        found[name] = state[f"model.{name}"].astype(np.float64)
    return found
