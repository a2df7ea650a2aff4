"""Keras' optimisers with their defaults set equal to the rules in `optimisers`; Keras 3 and 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from transect.training.frameworks._rules import NO_RATE, Arithmetic, rule_of
from transect.training.optimisers import group_rule
from transect.training.workloads import Parameters


def make_optimiser(keras: Any, rule: Parameters) -> Any:
    """Return an optimiser whose `set_rate` changes the learning rate.

    `set_rate` is to be called outside of compiled code. Raises KeyError for an unknown rule.
    """
    makers = {"sgd": _sgd, "nesterov": _sgd, "adam": _adam, "adamw": _adam}
    return makers.get(rule.optimiser, _by_rule)(keras, rule)


def set_states(optimiser: Any, states: list[list[np.ndarray]], updates: int) -> None:
    """Give it the states of its rule, arrays in the order of the trained variables.

    Its learning rate must be the one that it has last updated with.
    """
    optimiser.iterations.assign(updates)
    if hasattr(optimiser, "kept"):
        kept = optimiser.kept
    elif hasattr(optimiser, "_velocities"):
        kept = [optimiser._momentums, optimiser._velocities]
    else:
        # Keras' momentum is -learning_rate v of the rule. Without momentum it keeps nothing.
        kept = [optimiser.momentums] if optimiser.momentum else []
        states = [[-optimiser.rate_now * array for array in arrays] for arrays in states]
    for variables, arrays in zip(kept, states, strict=False):
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)


def clipping(keras: Any, rule: Parameters) -> Callable[[list[Any]], list[Any]]:
    """Return what scales all gradients to `rule.clip_norm` where their norm is larger.

    Keras' own `global_clipnorm` would see a weight decay that is a part of the gradient.
    """
    if rule.clip_norm is None:
        return lambda gradients: gradients
    limit = np.float64(rule.clip_norm)
    if not hasattr(keras, "ops"):
        import tensorflow as tf

        return lambda gradients: list(tf.clip_by_global_norm(gradients, tf.cast(limit, gradients[0].dtype))[0])
    ops = keras.ops

    def clipped(gradients: list[Any]) -> list[Any]:
        norm = ops.sqrt(sum(ops.sum(gradient * gradient) for gradient in gradients))
        factor = ops.minimum(ops.cast(limit, norm.dtype) / norm, ops.ones_like(norm))
        return [gradient * factor for gradient in gradients]

    return clipped


def _decayed(rule: Parameters, variable: Any, gradient: Any) -> Any:
    """Return the gradient with the variable's decay as a part."""
    decay = group_rule(rule, tuple(variable.shape)).weight_decay
    return gradient + decay * variable if decay else gradient


def _sgd(keras: Any, rule: Parameters) -> Any:
    """Return keras.optimizers.SGD with weight decay as a part of the gradient.

    Keras keeps v' = m v' - lr g, so that the old gradients go on with their old rate; there v' is
    multiplied by new / old, which makes it -lr v of the rule v = m v + g (P. Goyal et al.,
    arXiv:1706.02677, section 3, "momentum correction").
    """
    # On torch Keras makes an object of a subclass, which updates all weights at once.
    sgd: Any = type(keras.optimizers.SGD(rule.learning_rate))

    class CoupledSGD(sgd):
        """Keras' own `weight_decay` is decoupled: it does not go through the momentum."""

        rate_now = rule.learning_rate

        def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
            """Keras 3: all gradients at once."""
            of = trainable_variables or self._trainable_variables
            grads = [_decayed(rule, v, g) for g, v in zip(grads, of, strict=True)]
            return super().apply(grads, trainable_variables)

        def set_rate(self, rate: float) -> None:
            """Take this rate from the next update on."""
            old, rate = self.rate_now, rate or NO_RATE * rule.learning_rate
            if rate != old:
                for buffer in self.momentums:
                    buffer.assign(buffer * (rate / old))
                self.learning_rate = rate
                self.rate_now = rate

    class CoupledSGD2(CoupledSGD):
        """The same in Keras 2, which has no `apply`."""

        def update_step(self, gradient: Any, variable: Any) -> None:
            """Each gradient."""
            super().update_step(_decayed(rule, variable, gradient), variable)

    kind = CoupledSGD if hasattr(keras, "ops") else CoupledSGD2
    # As for batch norm: a Python number would lose digits.
    return kind(rule.learning_rate, np.float64(rule.momentum), nesterov=rule.optimiser == "nesterov")


def _adam(keras: Any, rule: Parameters) -> Any:
    """Return keras.optimizers.AdamW, or Adam with a decay in the gradient, with epsilon where the rule has it.

    Keras adds it to sqrt(v) before the correction of its bias: times sqrt(1 - beta2^t) it is equal.
    Left as it is: in float32 Keras takes 1 - beta2^t of a rounded power, wrong by 1e-5 at first.
    """
    decoupled = rule.optimiser == "adamw"
    kind: Any = type((keras.optimizers.AdamW if decoupled else keras.optimizers.Adam)(rule.learning_rate))
    if hasattr(keras, "ops"):
        cast, power, root = keras.ops.cast, keras.ops.power, keras.ops.sqrt
    else:
        import tensorflow as tf

        cast, power, root = tf.cast, tf.pow, tf.sqrt
    name = keras.backend.floatx()

    class UncorrectedEpsilon(kind):
        """Its epsilon follows the step."""

        rate_now = rule.learning_rate
        excludes = False

        @property
        def epsilon(self) -> Any:
            """Return what this step's update adds to sqrt(v)."""
            done = cast(self.iterations, name) + 1
            return self.given_epsilon * root(1 - power(cast(self.beta_2, name), done))

        @epsilon.setter
        def epsilon(self, value: float) -> None:
            self.given_epsilon = value

        def build(self, var_list: Any) -> None:
            """Leave out the weights that have no decay."""
            if decoupled and rule.decay == "matrices" and not self.excludes:
                self.excludes = True
                self.exclude_from_weight_decay(var_list=[v for v in var_list if len(v.shape) < 2])
            super().build(var_list)

        def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
            """Keras 3: all gradients at once."""
            if not decoupled:
                of = trainable_variables or self._trainable_variables
                grads = [_decayed(rule, v, g) for g, v in zip(grads, of, strict=True)]
            return super().apply(grads, trainable_variables)

        def set_rate(self, rate: float) -> None:
            """Take this rate from the next update on; the averages do not know it."""
            if rate != self.rate_now:
                self.learning_rate = rate
                self.rate_now = rate

    class UncorrectedEpsilon2(UncorrectedEpsilon):
        """The same in Keras 2, which has no `apply`."""

        def update_step(self, gradient: Any, variable: Any) -> None:
            """Each gradient."""
            super().update_step(gradient if decoupled else _decayed(rule, variable, gradient), variable)

    # Keras takes 1 - beta2 of what it is given and beta2^t of what it has rounded: the same here.
    betas = [np.float64(np.dtype(name).type(beta)) for beta in (rule.beta1, rule.beta2)]
    # As for momentum: TensorFlow would make a float32 of a Python number.
    more = {"weight_decay": np.float64(rule.weight_decay)} if decoupled else {}
    made = UncorrectedEpsilon if hasattr(keras, "ops") else UncorrectedEpsilon2
    return made(rule.learning_rate, beta_1=betas[0], beta_2=betas[1], epsilon=np.float64(rule.epsilon), **more)


def _by_rule(keras: Any, rule: Parameters) -> Any:
    """Return an optimiser of Keras 3 that computes the rule itself.

    Keras' own RMSprop and Adagrad take the root of the average plus epsilon, and its LAMB adds epsilon to a root
    whose bias is not corrected.
    """
    ops = keras.ops

    def ratio(w: Any, along: Any) -> Any:
        size, length = ops.norm(ops.reshape(w, (-1,))), ops.norm(ops.reshape(along, (-1,)))
        # Where a norm is 0 nothing is divided by it, nor differentiated.
        there = ops.logical_and(size > 0, length > 0)
        return ops.where(there, size / ops.where(there, length, ops.ones_like(length)), ops.ones_like(size))

    arithmetic = Arithmetic(root=ops.sqrt, ratio=ratio)
    # 1 - beta^t = -expm1(t log beta), without the digits that float32 loses in the power.
    logarithms = [np.float64(math.log(beta) if beta else -math.inf) for beta in (rule.beta1, rule.beta2)]

    class ByRule(keras.optimizers.Optimizer):
        """Its states are `kept`, in the order of the rule."""

        rate_now = rule.learning_rate

        def build(self, variables: Any) -> None:
            """Make the states."""
            if self.built:
                return
            super().build(variables)
            keeps, _ = rule_of(rule, arithmetic)
            self.kept = [
                [self.add_variable_from_reference(v, name=f"state_{number}") for v in variables]
                for number in range(keeps)
            ]

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            """Apply the rule to one variable."""
            dtype = variable.dtype
            rate, grad = ops.cast(learning_rate, dtype), ops.cast(gradient, dtype)
            step = ops.cast(self.iterations + 1, dtype)
            corrections = [-ops.expm1(step * ops.cast(logarithm, dtype)) for logarithm in logarithms]
            kept = [states[self._get_variable_index(variable)] for states in self.kept]
            _, changed = rule_of(group_rule(rule, tuple(variable.shape)), arithmetic)
            values = [ops.convert_to_tensor(one) for one in (variable, *kept)]
            value, states = changed(values[0], grad, values[1:], rate, corrections)
            for one, new in zip((variable, *kept), (value, *states), strict=True):
                self.assign(one, new)

        def set_rate(self, rate: float) -> None:
            """Take this rate from the next update on."""
            if rate != self.rate_now:
                self.learning_rate = rate
                self.rate_now = rate

    return ByRule(rule.learning_rate)
