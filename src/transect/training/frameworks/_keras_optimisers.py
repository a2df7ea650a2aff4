"""Keras' optimisers with their defaults set equal to the rules in `optimisers`; Keras 3 and 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.workloads import Parameters


def make_optimiser(keras: Any, rule: Parameters) -> Any:
    """Return an optimiser whose `set_rate` changes the learning rate.

    `set_rate` is to be called outside of compiled code. Raises KeyError for an unknown rule.
    """
    makers = {"sgd": _sgd, "nesterov": _sgd, "adamw": _adamw}
    return makers[rule.optimiser](keras, rule)


def set_states(optimiser: Any, states: list[list[np.ndarray]], updates: int) -> None:
    """Give it the states of its rule, arrays in the order of the trained variables.

    Its learning rate must be the one that it has last updated with.
    """
    optimiser.iterations.assign(updates)
    if hasattr(optimiser, "_velocities"):
        kept = [optimiser._momentums, optimiser._velocities]
    else:
        # Keras' momentum is -learning_rate v of the rule. Without momentum it keeps nothing.
        kept = [optimiser.momentums] if optimiser.momentum else []
        states = [[-optimiser.rate_now * array for array in arrays] for arrays in states]
    for variables, arrays in zip(kept, states, strict=False):
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)


def _sgd(keras: Any, rule: Parameters) -> Any:
    """Return keras.optimizers.SGD with weight decay as a part of the gradient.

    Keras keeps v' = m v' - lr g, so that the old gradients go on with their old rate; there v' is
    multiplied by new / old, which makes it -lr v of the rule v = m v + g (P. Goyal et al.,
    arXiv:1706.02677, section 3, "momentum correction").
    """
    # On torch Keras makes an object of a subclass, which updates all weights at once.
    sgd: Any = type(keras.optimizers.SGD(rule.learning_rate))
    weight_decay = rule.weight_decay

    class CoupledSGD(sgd):
        """Keras' own `weight_decay` is decoupled: it does not go through the momentum."""

        rate_now = rule.learning_rate

        def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
            """Keras 3: all gradients at once."""
            if weight_decay:
                of = trainable_variables or self._trainable_variables
                grads = [g + weight_decay * v for g, v in zip(grads, of, strict=True)]
            return super().apply(grads, trainable_variables)

        def set_rate(self, rate: float) -> None:
            """Take this rate from the next update on."""
            old = self.rate_now
            if rate != old:
                for buffer in self.momentums:
                    buffer.assign(buffer * (rate / old))
                self.learning_rate = rate
                self.rate_now = rate

    class CoupledSGD2(CoupledSGD):
        """The same in Keras 2, which has no `apply`."""

        def update_step(self, gradient: Any, variable: Any) -> None:
            """Each gradient."""
            if weight_decay:
                gradient = gradient + weight_decay * variable
            super().update_step(gradient, variable)

    kind = CoupledSGD if hasattr(keras, "ops") else CoupledSGD2
    # As for batch norm: a Python number would lose digits.
    return kind(rule.learning_rate, np.float64(rule.momentum), nesterov=rule.optimiser == "nesterov")


def _adamw(keras: Any, rule: Parameters) -> Any:
    """Return keras.optimizers.AdamW with epsilon where the rule has it.

    Keras adds it to sqrt(v) before the correction of its bias: times sqrt(1 - beta2^t) it is equal.
    Left as it is: in float32 Keras takes 1 - beta2^t of a rounded power, wrong by 1e-5 at first.
    """
    adamw: Any = type(keras.optimizers.AdamW(rule.learning_rate))
    if hasattr(keras, "ops"):
        cast, power, root = keras.ops.cast, keras.ops.power, keras.ops.sqrt
    else:
        import tensorflow as tf

        cast, power, root = tf.cast, tf.pow, tf.sqrt
    name = keras.backend.floatx()

    class UncorrectedEpsilon(adamw):
        """Its epsilon follows the step."""

        rate_now = rule.learning_rate

        @property
        def epsilon(self) -> Any:
            """Return what this step's update adds to sqrt(v)."""
            done = cast(self.iterations, name) + 1
            return self.given_epsilon * root(1 - power(cast(self.beta_2, name), done))

        @epsilon.setter
        def epsilon(self, value: float) -> None:
            self.given_epsilon = value

        def set_rate(self, rate: float) -> None:
            """Take this rate from the next update on; the averages do not know it."""
            if rate != self.rate_now:
                self.learning_rate = rate
                self.rate_now = rate

    # Keras takes 1 - beta2 of what it is given and beta2^t of what it has rounded: the same here.
    betas = [np.float64(np.dtype(name).type(beta)) for beta in (rule.beta1, rule.beta2)]
    # As for momentum: TensorFlow would make a float32 of a Python number.
    return UncorrectedEpsilon(
        rule.learning_rate,
        weight_decay=np.float64(rule.weight_decay),
        beta_1=betas[0],
        beta_2=betas[1],
        epsilon=np.float64(rule.epsilon),
    )
