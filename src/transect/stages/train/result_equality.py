"""A training beside its float64 reference: in its own run, and restarted from the reference's states.

The two see different mistakes. The run itself shows all that happened in it, up to the step from which
the tolerance is too large to tell. A restart begins sharp anywhere, and as it is the same trainer after
its run, with the reference's momentum and number of updates, it shows whatever is wrong from some step
on. What only a part of the run shows after that step, and no restart, is not seen: so the record says
from which step the run was not checkable.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.files import canonical_json
from transect.engine.job import Job
from transect.training.distance import weights_distance
from transect.training.restarts import RESTARTS, RestartPath, read_paths
from transect.training.sharpness import blind_from

Facts = list[dict[str, Any]]


def effective_rate(reduce: str, replicas: int) -> dict[str, Any]:
    """Return what the record says where changes are summed: such a run equals a reference that sums too.

    >>> effective_rate("sum", 3)["effective_rate"]
    {'factor': 3, 'reason': 'sum without a mean: effective rate x 3'}
    """
    if reduce != "sum" or replicas == 1:
        return {}
    reason = f"sum without a mean: effective rate x {replicas}"
    return {"effective_rate": {"factor": replicas, "reason": reason}}


class Reference:
    """What the reference cell left, for this cell's precision."""

    def __init__(self, job: Job) -> None:
        folder: Path = job.input("reference")
        precision = job.cell.precision
        with np.load(folder / "trajectory.npz") as file:
            self.loss, self.tolerance = file["loss"], file[f"tolerance_{precision}"]
        with np.load(folder / "weights.npz") as file:
            self.weights = {name: file[name] for name in file.files}
        details = json.loads((folder / "record.json").read_text())["details"]
        self.weights_tolerance = float(details["weights_tolerance"][precision])
        self.rule = str(details["rules"].get(precision) or canonical_json(details["rules"]))
        self.restarts = read_paths(folder / RESTARTS, precision)

    def facts(self, job: Job) -> dict[str, Any]:
        """Return what the record says of the check."""
        return {
            "reference": job.spec["inputs"]["reference"][1],
            "reference_steps": len(self.loss),
            "tolerance": {"precision": job.cell.precision, "rule": self.rule, "weights": self.weights_tolerance},
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Restarted:
    """One restart: the reference's path, and how far the losses of the ranks' mean are from it."""

    path: RestartPath
    deviation: np.ndarray

    @property
    def ratio(self) -> float | None:
        """None where a loss overflows: `fault` says so."""
        ratio = float((self.deviation / self.path.tolerance).max())
        return ratio if np.isfinite(ratio) else None


class Equality:
    """The comparison of one cell: `loss` (steps,) is the ranks' mean, `weights` those checked."""

    def __init__(self, reference: Reference, loss: np.ndarray, weights: dict[str, np.ndarray], facts: Facts) -> None:
        self._reference = reference
        self.deviation = np.abs(loss[: len(reference.loss)] - reference.loss)
        self.moved = weights_distance(weights, reference.weights)
        self.blind_from = blind_from(reference.loss, reference.tolerance)
        self._restarts, self._reason = _restarted(reference.restarts, facts)

    def values(self) -> dict[str, float]:
        """Return the metrics."""
        reference, steps = self._reference, len(self._reference.loss)
        ratios = [restart.ratio for restart in self._restarts if restart.ratio is not None]
        return {
            "equality_ratio": float((self.deviation / reference.tolerance).max()),
            "loss_deviation": float(self.deviation.max()),
            "weights_deviation": self.moved,
            "weights_equality_ratio": self.moved / reference.weights_tolerance,
            "sharp_steps": steps if self.blind_from is None else self.blind_from,
            **({"restart_ratio": max(ratios)} if ratios else {}),
        }

    def details(self) -> dict[str, Any]:
        """Return from where it cannot tell, and what became of the restarts."""
        return {
            "not_checkable_from": self.blind_from,
            "restarts": [
                {"step": run.path.first, "steps": len(run.deviation), "ratio": run.ratio, "sharp": run.path.sharp}
                for run in self._restarts
            ],
            "restarts_not_checkable": self._reason,
        }

    def fault(self) -> str | None:
        """Say what is wrong with the training, or None when nothing leaves its tolerance."""
        reference = self._reference
        if (step := _outside(self.deviation, reference.tolerance)) is not None:
            return (
                f"the loss leaves the float64 reference at step {step}: it deviates by "
                f"{self.deviation[step]:.3g}, allowed are {reference.tolerance[step]:.3g}"
            )
        for restart in self._restarts:
            if (step := _outside(restart.deviation, restart.path.tolerance)) is not None:
                return (
                    f"restarted from the float64 reference's state at step {restart.path.first}, the loss "
                    f"leaves it at step {restart.path.first + step}: it deviates by "
                    f"{restart.deviation[step]:.3g}, allowed are {restart.path.tolerance[step]:.3g}"
                )
        if not self.moved <= reference.weights_tolerance:
            return (
                f"after {len(reference.loss)} steps the weights deviate from the float64 reference by "
                f"{self.moved:.3g}, allowed are {reference.weights_tolerance:.3g}"
            )
        return None


def _outside(deviation: np.ndarray, tolerance: np.ndarray) -> int | None:
    outside = np.flatnonzero(~(deviation <= tolerance))
    return int(outside[0]) if len(outside) else None


def _restarted(paths: list[RestartPath], facts: Facts) -> tuple[list[_Restarted], str | None]:
    telling = [rank for rank in facts if rank.get("tells_loss", True)]
    reports: list[Any] = [rank["restarts"] for rank in telling if rank.get("restarts") is not None]
    if len(reports) < len(telling):
        return [], "the trainer is a program of its own, which was restarted from no state"
    for report in reports:
        if "not_checkable" in report:
            return [], str(report["not_checkable"])
    if not paths:
        return [], "the reference's loss overflows from each of its states"
    losses = [np.mean([rank["loss"][number] for rank in reports], axis=0) for number in range(len(paths))]
    restarts = [
        _Restarted(path=path, deviation=np.abs(loss - path.loss)) for path, loss in zip(paths, losses, strict=True)
    ]
    if not any(path.sharp for path in paths):
        return restarts, "a tolerance of a tenth of what the updates do is exceeded from each state"
    return restarts, None
