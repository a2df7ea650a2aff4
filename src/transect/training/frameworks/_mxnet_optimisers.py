"""The update rules for gluon.Trainer: MXNet's kernels where they compute the rule, else NDArrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.frameworks._rules import NO_RATE, Arithmetic, rule_of
from transect.training.optimisers import group_rule
from transect.training.workloads import Parameters


def make_optimiser(rule: Parameters, dtype: Any) -> Any:
    """Return an optimiser for gluon.Trainer whose `change_rate` sets the learning rate.

    What it keeps is `factor` times the states of the rule. Raises KeyError for an unknown rule.
    """
    makers = {"sgd": _make_sgd, "nesterov": _make_nesterov}
    return makers.get(rule.optimiser, _make_by_rule)(rule, dtype)


def set_states(updater: Any, states: list[list[np.ndarray]], updates: int) -> None:
    """Give an updater the states of its optimiser's rule, arrays in the order of the parameters.

    It must have updated before: what it keeps is made then.
    """
    optimiser = updater.optimizer
    for index, kept in updater.states.items():
        optimiser._index_update_count[index] = updates
        if kept is None:  # without momentum
            continue
        parts = kept if isinstance(kept, tuple) else (kept,)
        for part, given in zip(parts, states, strict=False):
            part[:] = optimiser.factor * given[index]


def _make_sgd(rule: Parameters, dtype: Any) -> Any:
    import mxnet as mx

    class Sgd(mx.optimizer.SGD):
        """MXNet's own kernels. Their momentum holds learning_rate * v: scaled when that changes."""

        def __init__(self) -> None:
            super().__init__(momentum=rule.momentum, wd=rule.weight_decay, learning_rate=rule.learning_rate)
            self.momenta: list[Any] = []

        @property
        def factor(self) -> float:
            return -float(self.lr)

        def create_state(self, index: Any, weight: Any) -> Any:
            state = super().create_state(index, weight)
            if state is not None:
                self.momenta.append(state)
            return state

        def change_rate(self, rate: float) -> None:
            rate = rate or NO_RATE * rule.learning_rate
            if rate != self.lr:
                for momentum in self.momenta:
                    momentum *= rate / self.lr
                self.set_learning_rate(rate)

    class ExactSgd(Sgd):
        """The same rule in NDArray arithmetic: the kernels round rates and factors to float32."""

        factor = 1.0

        def __init__(self) -> None:
            super().__init__()
            self.aggregate_num = 0  # one array in each call

        def update_multi_precision(self, index: int, weight: Any, grad: Any, state: Any) -> None:
            step = grad + group_rule(rule, weight.shape).weight_decay * weight
            if state is not None:
                state *= rule.momentum
                state += step
                step = state
            weight -= self.lr * step

        def change_rate(self, rate: float) -> None:
            # v is free of the rate here.
            self.set_learning_rate(rate)

    return ExactSgd() if dtype == np.float64 else Sgd()


def _in_arrays() -> type[Any]:
    import mxnet as mx

    class InArrays(mx.optimizer.Optimizer):
        """MXNet's kernels round factors to float32, have AdamW in a contrib only, and epsilon in other places."""

        factor = 1.0

        def __init__(self, rule: Parameters) -> None:
            super().__init__(learning_rate=rule.learning_rate, wd=rule.weight_decay)
            self.rule = rule
            self.aggregate_num = 0

        def zeros(self, weight: Any) -> Any:
            return mx.nd.zeros(weight.shape, weight.context, dtype=weight.dtype)

        def change_rate(self, rate: float) -> None:
            self.set_learning_rate(rate)

    return InArrays


def _make_nesterov(rule: Parameters, dtype: Any) -> Any:
    base: Any = _in_arrays()

    class Nesterov(base):
        """v = momentum v + g; w -= lr (g + momentum v)."""

        def create_state(self, index: Any, weight: Any) -> Any:
            return self.zeros(weight)

        def update(self, index: int, weight: Any, grad: Any, state: Any) -> None:
            step = grad + group_rule(rule, weight.shape).weight_decay * weight
            state *= rule.momentum
            state += step
            weight -= self.lr * (step + rule.momentum * state)

    return Nesterov(rule)


def _make_by_rule(rule: Parameters, dtype: Any) -> Any:
    import mxnet as mx

    base: Any = _in_arrays()

    def ratio(w: Any, along: Any) -> float:
        size, length = (float(mx.nd.norm(array).asscalar()) for array in (w, along))
        return size / length if size and length else 1.0

    arithmetic = Arithmetic(root=mx.nd.sqrt, ratio=ratio)
    keeps, _ = rule_of(rule, arithmetic)

    class ByRule(base):
        """As in `optimisers`; each array counts its own updates."""

        def create_state(self, index: Any, weight: Any) -> Any:
            return tuple(self.zeros(weight) for _ in range(keeps))

        def update(self, index: int, weight: Any, grad: Any, state: Any) -> None:
            self._update_count(index)
            step = self._index_update_count[index]
            corrections = [1 - beta**step for beta in (rule.beta1, rule.beta2)]
            _, changed = rule_of(group_rule(rule, weight.shape), arithmetic)
            value, states = changed(weight, grad, state, self.lr, corrections)
            for array, new in zip((weight, *state), (value, *states), strict=True):
                array[:] = new

    return ByRule(rule)
