"""The checks of losses, optimisers and schedules that are plug-ins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.domain.metrics import METRICS
from transect.domain.options import settings
from transect.training.optimisers import OWN_OPTIMISER
from transect.training.workloads import WORKLOADS


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a plug-in: what was expected, and what it gave."""

    what: str
    expected: object
    given: object
    holds: bool


def same(what: str, expected: object, given: object) -> Check:
    """Expect what is equal."""
    return Check(what, expected, given, given == expected)


def known(what: str, name: str, names: Any) -> Check:
    """Expect one of the names."""
    return Check(what, "a name that is known", name, name in names)


def check_optimiser(plugin: Any, name: str) -> Iterator[Check]:
    """Its update makes weights smaller where the gradient is 1."""
    if name == OWN_OPTIMISER:
        return  # it is what its file says
    rule = WORKLOADS.get("iris-mlp").defaults.model_copy(
        update={"optimiser": name, "momentum": 0.5, "weight_decay": 0.1}
    )
    yield same(
        "takes hyper-parameters that there are", [], [key for key in plugin.takes if key not in type(rule).model_fields]
    )
    weights, states = np.ones(8), [np.zeros(8) for _ in range(plugin.states)]
    plugin.update(rule, weights, np.ones(8), states, 0.1, 1)
    yield Check("update with a gradient of 1", "smaller weights", weights[0], bool((weights < 1).all()))
    live = plugin.live_states(rule)
    yield Check("live states", f"0 to {plugin.states}", live, 0 <= live <= plugin.states)


def check_loss(plugin: Any, name: str) -> Iterator[Check]:
    """Its gradient is that of its value."""
    outputs, y = np.array([[0.3, -0.2, 0.1], [0.0, 0.4, -0.5]]), np.array([2, 0])
    if plugin.targets == "tokens":
        outputs, y = outputs[:, None, :], y[:, None]
    elif plugin.targets in ("numbers", "labels"):
        y = np.eye(3)[y]
    rule = WORKLOADS.get("iris-mlp").defaults.model_copy(update={"loss": name})
    yield known("score", plugin.score, METRICS)
    yield same(
        "takes hyper-parameters that there are", [], [key for key in plugin.takes if key not in type(rule).model_fields]
    )
    _, gradient = plugin.value_and_gradient(rule, outputs, y)
    yield same("shape of the gradient", outputs.shape, gradient.shape)
    steps = [np.where(np.arange(outputs.size).reshape(outputs.shape) == at, 1e-6, 0) for at in range(outputs.size)]
    slopes = [
        (plugin.value_and_gradient(rule, outputs + step, y)[0] - plugin.value_and_gradient(rule, outputs - step, y)[0])
        / 2e-6
        for step in steps
    ]
    far = float(np.abs(gradient.ravel() - slopes).max())
    yield Check("gradient beside differences of the value", "less than 1e-6 apart", far, far < 1e-6)


def check_schedule(plugin: Any, name: str) -> Iterator[Check]:
    """It gives a factor for each step."""
    if name == "function":
        return  # it is what its file says
    steps = np.arange(10.0)
    factors = plugin.factors(settings(dict(plugin.options), ()), steps, 10)
    yield same("shape of the factors of 10 steps", steps.shape, factors.shape)
    yield Check("factors", "numbers from 0 on", factors.tolist(), bool((np.isfinite(factors) & (factors >= 0)).all()))
