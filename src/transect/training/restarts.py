"""The file of states from which a trainer is restarted, with the losses expected from there.

A restart at step k hands a trainer the reference's weights, the optimiser's states and the number of
updates before that step. Its next losses must follow the reference's within a tolerance that begins
anew there. Weights and states are stored as float32, and the reference goes on from those numbers.
What is stored of one at step 0 are no weights: they are those of the data stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transect.training.frameworks import TrainingState
from transect.training.raw_arrays import describe_npz

# Its name beside the reference's record.
RESTARTS = "restarts.npz"

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, slots=True)
class RestartPath:
    """What the reference does from step `first` on: its losses (n,) and their tolerances (n,).

    `sharp`: a trainer that did nothing from there on would exceed its tolerance ten times.
    """

    first: int
    loss: np.ndarray
    tolerance: np.ndarray
    sharp: bool


def rounded(state: TrainingState) -> TrainingState:
    """Return it as it is stored."""
    return TrainingState(
        weights=_float32(state.weights), states=tuple(map(_float32, state.states)), updates=state.updates
    )


def _float32(arrays: Mapping[str, np.ndarray]) -> Arrays:
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def state_arrays(first: int, state: TrainingState) -> Arrays:
    """Return how the state before step `first` is stored: by name, without what is all zero."""
    groups = {"weights": state.weights}
    groups |= {f"state{number}": arrays for number, arrays in enumerate(state.states)}
    return {
        f"{first}/{group}/{name}": array
        for group, arrays in groups.items()
        for name, array in arrays.items()
        if group == "weights" or array.any()
    }


def read_states(path: Path, start: Arrays, trained: list[str], states: int) -> Iterator[tuple[int, int, TrainingState]]:
    """Yield first step, number of steps and state of each restart, one at a time.

    `start` are the training's initial weights, `trained` the names of those that have `states`.
    """
    with np.load(path) as file:
        for first, count in zip(file["first"].tolist(), file["count"].tolist(), strict=True):
            weights = start
            if first:
                weights = {name: file[f"{first}/weights/{name}"] for name in start}
            kept = []
            for number in range(states):
                keys = {name: f"{first}/state{number}/{name}" for name in trained}
                kept.append(
                    {
                        name: file[key] if key in file else np.zeros(start[name].shape, np.float32)
                        for name, key in keys.items()
                    }
                )
            yield first, count, TrainingState(weights=weights, states=tuple(kept), updates=first)


def describe_states(path: Path, states: int) -> list[dict[str, Any]]:
    """Return the restarts as a trainer's plan has them: what `read_states` reads, by its place in the file.

    `states` is how many arrays the optimiser keeps for each weight.
    """
    with np.load(path) as file:
        starts = list(zip(file["first"].tolist(), file["count"].tolist(), strict=True))
    groups: dict[tuple[str, str], Any] = {}
    for name, entry in describe_npz(path, lambda name: "/" in name).items():
        first, group, weight = name.split("/", 2)
        groups.setdefault((first, group), {})[weight] = entry
    return [
        {
            "first": first,
            "steps": count,
            "weights": groups.get((str(first), "weights")),
            "states": [groups.get((str(first), f"state{number}"), {}) for number in range(states)],
        }
        for first, count in starts
    ]


def read_paths(path: Path, precision: str) -> list[RestartPath]:
    """Return what trainers of this precision must follow. Raises KeyError for one without tolerance."""
    with np.load(path) as file:
        columns = (file[name] for name in ("first", "count", "loss", f"tolerance_{precision}", f"sharp_{precision}"))
        return [
            RestartPath(first=int(first), loss=loss[:count], tolerance=tolerance[:count], sharp=bool(sharp))
            for first, count, loss, tolerance, sharp in zip(*columns, strict=True)
        ]
