"""The rules of `optimisers` as optax has them, and their states as the rules name them.

A chain gives what weights move along; the trainer multiplies it by the step's learning rate. optax's own
optimisers hold the rate inside: they would be compiled anew for each, or keep it as a state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from transect.training.workloads import Parameters


def make_optimiser(rule: Parameters, precision: str) -> Any:
    """Return an `optax.GradientTransformation` for weights kept in `precision`. Raises KeyError for an unknown rule."""
    import optax

    # optax takes 1 - beta of the number that it is given, and beta^t of what it has rounded: the same here.
    beta1, beta2 = (float(np.dtype(precision).type(beta)) for beta in (rule.beta1, rule.beta2))
    adam = optax.scale_by_adam(beta1, beta2, rule.epsilon)
    decay = [optax.add_decayed_weights(rule.weight_decay, _matrices if rule.decay == "matrices" else None)]
    decay = decay if rule.weight_decay else []
    nesterov = rule.optimiser == "nesterov"
    momentum = [optax.trace(rule.momentum, nesterov=nesterov)] if rule.momentum else []
    links = {
        "sgd": [*decay, *momentum],
        "nesterov": [*decay, *momentum],
        "adam": [*decay, adam],
        # Decay of the weights themselves.
        "adamw": [adam, *decay],
        "lamb": [adam, *decay, optax.scale_by_trust_ratio()],
        "rmsprop": [*decay, optax.scale_by_rms(rule.alpha, rule.epsilon, eps_in_sqrt=False), *momentum],
        "adagrad": [*decay, _adagrad(rule.epsilon)],
    }
    clip = [] if rule.clip_norm is None else [optax.clip_by_global_norm(rule.clip_norm)]
    # A chain has at least one link.
    return optax.chain(optax.identity(), *clip, *links[rule.optimiser])


OPTIMISERS = ("sgd", "nesterov", "adam", "adamw", "rmsprop", "adagrad", "lamb")


def with_states(moving: Any, states: list[dict[str, Any]], updates: int) -> Any:
    """Return the chain's state `moving` with the rule's states in it, dicts like the trained weights, and its count.

    What a chain does not keep, as the velocity of a momentum of 0, is left out.
    """
    kept = iter(states)

    def filled(part: Any) -> Any:
        if isinstance(part, dict):
            return next(kept)
        if isinstance(part, tuple):
            parts = [filled(inner) for inner in part]
            return type(part)(*parts) if hasattr(part, "_fields") else tuple(parts)
        return np.asarray(updates, np.int32)

    return filled(moving)


def _matrices(weights: dict[str, Any]) -> dict[str, bool]:
    return {name: weight.ndim > 1 for name, weight in weights.items()}


class _Sums(NamedTuple):
    squares: Any


def _adagrad(epsilon: float) -> Any:
    """Return torch's rule, whose epsilon is outside of the root; optax's is inside."""
    import jax
    import optax

    def update(gradients: Any, state: _Sums, params: Any = None) -> tuple[Any, _Sums]:
        sums = jax.tree.map(lambda s, g: s + g * g, state.squares, gradients)
        return jax.tree.map(lambda s, g: g / (jax.numpy.sqrt(s) + epsilon), sums, gradients), _Sums(sums)

    return optax.GradientTransformation(lambda weights: _Sums(jax.tree.map(jax.numpy.zeros_like, weights)), update)
