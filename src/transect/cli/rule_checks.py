"""The checks of losses, optimisers, schedules, aggregations and methods that are plug-ins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.domain.metrics import METRICS
from transect.domain.options import settings
from transect.federated.aggregations import Updates
from transect.federated.methods import Terms
from transect.federated.turn import Turn
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


def check_aggregation(plugin: Any, name: str) -> Iterator[Check]:
    """Equal updates come to that update, and it changes nothing that it is given but its state."""
    wrong = [key for key, option in plugin.options.items() if not option.takes(option.default)]
    yield same("options that do not take their default", [], wrong)
    given, clients = settings(plugin.options, ()), 16
    yield same(f"complaint about the defaults and {clients} updates", None, plugin.complaint(given, clients))
    model, vector = np.linspace(-1, 1, 5), np.array([0.5, -0.25, 0.0, 1.5, -2.0])
    updates = Updates(
        vectors=np.tile(vector, (clients, 1)), counts=np.arange(1, clients + 1), staleness=np.zeros(clients, np.int64)
    )
    before, state = dict(given), dict[str, np.ndarray]()
    change = plugin.combine(given, updates, state)
    yield same("shape and type of a change", ((5,), "float64"), (change.shape, str(change.dtype)))
    far = float(np.abs(change / np.abs(change).max(initial=1e-300) - vector / 2).max())
    yield Check("direction of the change that equal updates come to", "theirs, to 1e-9", far, far < 1e-9)
    following = plugin.step(given, model, change, state)
    yield same("shape and type of a model", ((5,), "float64"), (following.shape, str(following.dtype)))
    kept = {key: (array.shape, str(array.dtype)) for key, array in state.items()}
    yield same("shapes and types of its state", dict.fromkeys(state, ((5,), "float64")), kept)
    unchanged = (updates.vectors == vector).all() and (model == np.linspace(-1, 1, 5)).all() and given == before
    yield Check("what it is given", "as it was", "changed" if not unchanged else "as it was", bool(unchanged))


def check_method(plugin: Any, name: str) -> Iterator[Check]:
    """Vectors have the model's shape and precision, steps get no more than it says, and nothing given is changed."""
    wrong = [key for key, option in plugin.options.items() if not option.takes(option.default)]
    yield same("options that do not take their default", [], wrong)
    model, own, reached = (np.linspace(-1, last, 5, dtype=np.float32) for last in (1, 2, 3))
    server = np.linspace(0, 0.5, 5)
    arrays: dict[str, np.ndarray] = {"model": model, "own": own, "reached": reached, "server": server}
    before = {key: array.copy() for key, array in arrays.items()}
    masks = np.array([True, True, True, False, True]), np.array([False, False, False, False, True])
    terms = Terms(settings=settings(plugin.options, ()), rate=0.1, steps=2, trained=masks[0], personal=masks[1])
    plain = Turn(client=0, number=0, given=model, rows=np.zeros((2, 1), np.int64), seeds=np.zeros(2, np.int64))
    turns = [plugin.turn(terms, plain, own, server)]
    turns += [plugin.own_turn(terms, plain, own)] if plugin.second else []
    found = {"at_rest": plugin.at_rest(terms, model), "model_of": plugin.model_of(terms, model, own)}
    found |= {"kept": plugin.kept(terms, turns[-1], reached, own, server)} if plugin.keeps else {}
    for number, turn in enumerate(turns):
        given = {"given": turn.given, "anchor": turn.anchor, "correction": turn.correction}
        found |= {f"{key} of turn {number}": array for key, array in given.items() if array is not None}
    shapes = {key: (array.shape, str(array.dtype)) for key, array in found.items()}
    yield same("shapes and types of vectors", dict.fromkeys(found, ((5,), "float32")), shapes)
    has = {"pulls": any(turn.mu for turn in turns), "corrects": any(turn.correction is not None for turn in turns)}
    yield same(
        "what steps get that it does not say", [], [key for key, there in has.items() if there > getattr(plugin, key)]
    )
    lost = [key for key in ("meets", "second", "personalises") if getattr(plugin, key) and not plugin.keeps]
    yield same("what it says that clients cannot have who keep nothing", [], lost)
    change = plugin.change(terms, server, server)
    yield same("shape and type of a change", ((5,), "float64"), (change.shape, str(change.dtype)))
    changed = [key for key, array in arrays.items() if not np.array_equal(array, before[key])]
    yield same("arrays that it was given and has changed", [], changed)
