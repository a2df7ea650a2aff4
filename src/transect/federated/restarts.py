"""Single updates from where the reference stands: what shows an engine to be right where its own path tells nothing.

A path in float32 leaves that in float64 sooner or later, right as it may be. An update from the reference's own models
begins anew: it must come to the reference's next model, within a tolerance of one update. Models are stored as float32,
and the reference goes on from those numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transect.federated.rounds import Standing

# Updates that are tried.
_POINTS = 3


def points(rounds: int) -> list[int]:
    """Return the updates that are tried, the last one among them.

    >>> points(30)
    [9, 19, 29]
    """
    return sorted({max(0, round(rounds * number / _POINTS) - 1) for number in range(1, _POINTS + 1)})


@dataclass(frozen=True, kw_only=True, slots=True)
class Restart:
    """What the reference makes of an update `number`: from where, its loss and its next model, with what its clients keep (`Round.whole`).

    `loss_tolerance` and `model_tolerance` are those of one precision, and `sharp` says whether an engine that did nothing would exceed
    that of the model ten times.
    """

    number: int
    before: Standing
    loss: float
    model: np.ndarray
    loss_tolerance: float
    model_tolerance: float
    sharp: bool


def stored(standing: Standing) -> Standing:
    """Return it as it is stored."""
    models, kept = (
        {number: vector.astype(np.float32).astype(np.float64) for number, vector in vectors.items()}
        for vectors in (standing.models, standing.kept)
    )
    return replace(standing, models=models, kept=kept)


def restart_arrays(number: int, standing: Standing, **values: Any) -> dict[str, Any]:
    """Return what is stored of an update, by names in the file of the path."""
    named = {f"model/{version}": model.astype(np.float32) for version, model in standing.models.items()}
    named |= {f"kept/{client}": own.astype(np.float32) for client, own in standing.kept.items()}
    named |= {f"state/{name}": array for name, array in standing.state.items()} | {"server": standing.server}
    return {f"restart/{number}/{name}": value for name, value in {**named, **values}.items()}


def read_restarts(file: Mapping[str, np.ndarray], precision: str, dtype: Any) -> Iterator[Restart]:
    """Yield the updates that a file of the path has; models in an engine's precision."""
    for number in file["restarts"].tolist():
        prefix = f"restart/{number}/"
        own = {name.removeprefix(prefix): file[name] for name in file if name.startswith(prefix)}
        parts: dict[str, dict[str, np.ndarray]] = {"model": {}, "kept": {}, "state": {}}
        for name, array in own.items():
            kind, _, key = name.partition("/")
            if kind in parts and key:
                parts[kind][key] = array
        yield Restart(
            number=number,
            before=Standing(
                models={int(version): model.astype(dtype) for version, model in parts["model"].items()},
                state=parts["state"],
                kept={int(client): vector.astype(dtype) for client, vector in parts["kept"].items()},
                server=own["server"],
            ),
            loss=float(own["loss"]),
            model=own["after"],
            loss_tolerance=float(own[f"loss_tolerance_{precision}"]),
            model_tolerance=float(own[f"model_tolerance_{precision}"]),
            sharp=bool(own[f"sharp_{precision}"]),
        )
