"""The losses of `losses` in JAX, for class numbers and for targets of the outputs' own shape."""

from __future__ import annotations

from typing import Any

from transect.training.workloads import Parameters

LOSSES = ("cross-entropy", "mse", "huber", "binary-cross-entropy")


def mean_loss(rule: Parameters, outputs: Any, y: Any) -> Any:
    """Return the mean loss of outputs (n, ...) and targets; to be compiled. Raises KeyError for an unknown loss."""
    import jax
    from jax import numpy

    def of_numbers() -> Any:
        """Return what two losses begin with: the distance to the targets, of classes to vectors of one 1 and zeros."""
        return outputs - targets()

    def targets() -> Any:
        if y.shape == outputs.shape:
            return y.astype(outputs.dtype)
        return jax.nn.one_hot(y, outputs.shape[1], dtype=outputs.dtype)

    def cross_entropy() -> Any:
        shares = jax.nn.log_softmax(outputs)
        right = numpy.take_along_axis(shares, y[..., None], -1)[..., 0]
        if rule.label_smoothing:
            right = (1 - rule.label_smoothing) * right + rule.label_smoothing * shares.mean(-1)
        return -right.mean()

    def mse() -> Any:
        squares = of_numbers() ** 2
        return squares.mean() if y.shape == outputs.shape else 0.5 * squares.sum() / len(outputs)

    def huber() -> Any:
        distance = of_numbers()
        cut = numpy.clip(distance, -rule.delta, rule.delta)
        return (cut * (distance - 0.5 * cut)).mean()

    def binary() -> Any:
        # log(1 + e^x) - t x, whatever the sign of x.
        return (jax.nn.softplus(outputs) - targets() * outputs).mean()

    losses = {
        "cross-entropy": cross_entropy,
        "next-token": cross_entropy,
        "mse": mse,
        "huber": huber,
        "binary-cross-entropy": binary,
    }
    return losses[rule.loss]()
