"""Update rules of `optimisers` in any framework's own arithmetic, where its kernels compute another rule.

They take and return tensors, and know of them no more than their operators and what `Arithmetic` names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from transect.training.workloads import Parameters

# What stands for a learning rate of 0, as a share of the workload's, where a framework keeps the rate times the momentum:
# 0 would lose the momentum. No weight is moved by so little.
NO_RATE = 1e-20


@dataclass(frozen=True, kw_only=True, slots=True)
class Arithmetic:
    """`root` of each number; `ratio` of two tensors' Euclidean norms, which is 1 where either is 0."""

    root: Callable[[Any], Any]
    ratio: Callable[[Any, Any], Any]


# Takes weight, gradient, states, learning rate and 1 - beta^t for both betas; returns the new weight and states.
Rule = Callable[[Any, Any, Sequence[Any], Any, Sequence[Any]], tuple[Any, list[Any]]]


def rule_of(rule: Parameters, arithmetic: Arithmetic) -> tuple[int, Rule]:
    """Return how many states the rule keeps in use, and the rule. Raises KeyError for one that is not here."""
    keeps = {"adam": 2, "adamw": 2, "lamb": 2, "rmsprop": 1 + (rule.momentum > 0), "adagrad": 1}[rule.optimiser]
    rules = {"adam": _adam, "adamw": _adam, "lamb": _adam, "rmsprop": _rmsprop, "adagrad": _adagrad}
    made = rules[rule.optimiser]
    return keeps, lambda w, g, states, rate, corrections: made(rule, arithmetic, w, g, states, rate, corrections)


def _adam(
    rule: Parameters, arithmetic: Arithmetic, w: Any, g: Any, states: Sequence[Any], rate: Any, corrections: Any
) -> tuple[Any, list[Any]]:
    decay = rule.weight_decay
    if decay and rule.optimiser == "adam":
        g = g + decay * w
    first = rule.beta1 * states[0] + (1 - rule.beta1) * g
    second = rule.beta2 * states[1] + (1 - rule.beta2) * (g * g)
    along = first / corrections[0] / (arithmetic.root(second / corrections[1]) + rule.epsilon)
    if decay and rule.optimiser != "adam":
        along = along + decay * w
    if rule.optimiser == "lamb":
        rate = rate * arithmetic.ratio(w, along)
    return w - rate * along, [first, second]


def _rmsprop(
    rule: Parameters, arithmetic: Arithmetic, w: Any, g: Any, states: Sequence[Any], rate: Any, _: Any
) -> tuple[Any, list[Any]]:
    if rule.weight_decay:
        g = g + rule.weight_decay * w
    average = rule.alpha * states[0] + (1 - rule.alpha) * (g * g)
    along = g / (arithmetic.root(average) + rule.epsilon)
    if not rule.momentum:
        return w - rate * along, [average]
    velocity = rule.momentum * states[1] + along
    return w - rate * velocity, [average, velocity]


def _adagrad(
    rule: Parameters, arithmetic: Arithmetic, w: Any, g: Any, states: Sequence[Any], rate: Any, _: Any
) -> tuple[Any, list[Any]]:
    if rule.weight_decay:
        g = g + rule.weight_decay * w
    total = states[0] + g * g
    return w - rate * g / (arithmetic.root(total) + rule.epsilon), [total]
