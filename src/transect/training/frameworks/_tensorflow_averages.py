"""Averages of weights in TensorFlow, with Keras and without."""

from __future__ import annotations

from typing import Any


class Averages:
    """Of variables, each of them with an average beside it; `decay` is a workload's `ema`."""

    def __init__(self, tf: Any, variables: list[Any], decay: float | None) -> None:
        self._variables = variables
        self._averages: list[Any] = []

        def move() -> None:
            assert decay is not None
            for average, variable in zip(self._averages, variables, strict=True):
                average.assign(decay * average + (1 - decay) * variable)

        def exchange() -> None:
            for average, variable in zip(self._averages, variables, strict=True):
                kept = tf.identity(variable)
                with tf.control_dependencies([kept]):
                    variable.assign(average)
                average.assign(kept)

        self._tf = tf
        self._move, self._exchange = (tf.function(body, autograph=False) for body in (move, exchange))

    def move(self) -> None:
        """Move the averages towards the weights; the first call makes them the weights."""
        if self._averages:
            self._move()
        else:
            self._averages = [self._tf.Variable(variable, trainable=False) for variable in self._variables]

    def exchange(self) -> None:
        """Put the averages in place of the weights, and these in theirs."""
        self._exchange()
