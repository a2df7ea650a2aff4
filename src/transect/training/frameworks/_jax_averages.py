"""Averages of weights in JAX."""

from __future__ import annotations

from typing import Any


class Averages:
    """Of trees of arrays, which keep their places on devices; `decay` is a workload's `ema`."""

    def __init__(self, decay: float | None) -> None:
        import jax

        def move(averages: Any, weights: Any) -> Any:
            assert decay is not None
            return jax.tree.map(lambda a, w: decay * a + (1 - decay) * w, averages, weights)

        self._copied = jax.jit(lambda weights: jax.tree.map(jax.numpy.copy, weights))
        self._move = jax.jit(move, donate_argnums=0)
        self.values: Any = None

    def move(self, weights: Any) -> None:
        """Move the averages towards the weights; the first call makes them the weights."""
        self.values = self._copied(weights) if self.values is None else self._move(self.values, weights)

    def exchanged(self, weights: Any) -> Any:
        """Return the averages, and keep the weights in their place."""
        averages, self.values = self.values, weights
        return averages
