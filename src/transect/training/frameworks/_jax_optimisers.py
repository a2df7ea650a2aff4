"""The rules of `optimisers` as optax has them, and their states as the rules name them.

A chain gives what weights move along; the trainer multiplies it by the step's learning rate. optax's own
optimisers hold the rate inside: they would be compiled anew for each, or keep it as a state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from transect.training.workloads import Parameters


def make_optimiser(rule: Parameters, precision: str) -> Any:
    """Return an `optax.GradientTransformation` for weights kept in `precision`. Raises KeyError for an unknown rule."""
    return _MAKERS[rule.optimiser](rule, np.dtype(precision))


def with_states(moving: Any, states: list[dict[str, Any]], updates: int) -> Any:
    """Return the chain's state `moving` with the rule's states in it, dicts like the trained weights.

    What a chain does not keep, as the velocity of a momentum of 0, is left out.
    """
    if not isinstance(moving, tuple) or not hasattr(moving, "_fields"):
        return tuple(with_states(part, states, updates) for part in moving)
    kept = iter(states)
    filled = {name: np.asarray(updates, np.int32) if name == "count" else next(kept) for name in moving._fields}
    return type(moving)(**filled)


def _sgd(rule: Parameters, dtype: np.dtype[Any]) -> Any:
    """Weight decay as a part of the gradient, then the momentum."""
    import optax

    decayed = [optax.add_decayed_weights(rule.weight_decay)] if rule.weight_decay else []
    moved = [optax.trace(rule.momentum, nesterov=rule.optimiser == "nesterov")] if rule.momentum else []
    # A chain has at least one link.
    return optax.chain(optax.identity(), *decayed, *moved)


def _adamw(rule: Parameters, dtype: np.dtype[Any]) -> Any:
    """Averages, then decay of the weights themselves, as in `optax.adamw`."""
    import optax

    # optax takes 1 - beta of the number that it is given, and beta^t of what it has rounded: the same here.
    beta1, beta2 = (float(dtype.type(beta)) for beta in (rule.beta1, rule.beta2))
    return optax.chain(optax.scale_by_adam(beta1, beta2, rule.epsilon), optax.add_decayed_weights(rule.weight_decay))


_MAKERS: dict[str, Callable[[Parameters, np.dtype[Any]], Any]] = {"sgd": _sgd, "nesterov": _sgd, "adamw": _adamw}
