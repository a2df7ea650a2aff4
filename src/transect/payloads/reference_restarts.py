"""Where trainers are restarted, and what the reference does from there.

Few points, as each costs bytes: at even intervals up to the end of the path, so that what goes wrong
late in a training is in force at the last of them, and where a tolerance goes blind. A path too short
for that is restarted at its beginning, which costs no bytes and hardly any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from transect.domain.precisions import PRECISIONS
from transect.payloads.reference_path import Path64, Problem, trajectory, with_rate
from transect.training.frameworks import TrainingState
from transect.training.optimisers import OPTIMISERS
from transect.training.restarts import rounded, state_arrays
from transect.training.sharpness import SHARP, blind_from
from transect.training.tolerance import PERTURBED_RUNS, Tolerance, tolerance_of

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
    blind = [blind_from(exact.loss, one.loss) for one in tolerances.values()]
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
    restarts = [one for one in every if np.isfinite(one.loss).all()]
    arrays = {
        "first": np.array([one.first for one in restarts], np.int64),
        "count": np.array([len(one.loss) for one in restarts], np.int64),
        "loss": _padded([one.loss for one in restarts]),
    }
    for name in tolerances:
        arrays[f"tolerance_{name}"] = _padded([one.tolerance[name] for one in restarts])
        arrays[f"sharp_{name}"] = np.array([one.sharp(name) for one in restarts], bool)
    for one in restarts:
        if one.first:
            arrays |= state_arrays(one.first, one.state)
    return arrays


def _restart(
    problem: Problem, first: int, state: TrainingState, exact: Path64, tolerances: Mapping[str, Tolerance]
) -> _Restart:
    """Follow the reference from a state. What is at the beginning of the path is known already."""
    if first == 0:
        from_here = replace(problem, steps=min(LENGTH, problem.steps))
        loss = exact.loss[: from_here.steps]
        tolerance = {name: one.loss[: from_here.steps] for name, one in tolerances.items()}
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
    seeds = range(1, 1 + PERTURBED_RUNS)
    return tolerance_of(exact, (trajectory(problem, unit, noise, seed=seed) for seed in seeds), noise)
