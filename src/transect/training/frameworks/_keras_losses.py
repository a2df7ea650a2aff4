"""The losses of `losses` in Keras' own functions, for class numbers; Keras 3 and 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.frameworks._keras_model import operations
from transect.training.workloads import Parameters

LOSSES = ("cross-entropy", "mse", "huber", "binary-cross-entropy")


def make_loss(keras: Any, rule: Parameters) -> Any:
    """Return the mean loss of class numbers and outputs (n, classes). Raises KeyError for an unknown loss."""
    if rule.loss == "cross-entropy" and not rule.label_smoothing:
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    ops = operations(keras)

    # TensorFlow would make a float32 of a Python number.
    delta = np.float64(rule.delta)

    def half_squared_distance(wanted: Any, outputs: Any) -> Any:
        # Keras' own "mse" averages over classes too and has no half.
        return 0.5 * ops.sum((outputs - wanted) * (outputs - wanted), axis=-1)

    losses: dict[str, Any] = {
        "cross-entropy": lambda wanted, outputs: keras.losses.categorical_crossentropy(
            wanted, outputs, from_logits=True, label_smoothing=rule.label_smoothing
        ),
        "mse": half_squared_distance,
        "huber": lambda wanted, outputs: keras.losses.huber(wanted, outputs, delta=delta),
        "binary-cross-entropy": lambda wanted, outputs: keras.losses.binary_crossentropy(
            wanted, outputs, from_logits=True
        ),
    }
    each = losses[rule.loss]

    class OfClasses(keras.losses.Loss):
        """Of the vectors of one 1 and zeros."""

        def call(self, y_true: Any, y_pred: Any) -> Any:
            """Return the loss of each sample, (n,)."""
            # Keras 2 makes a column of the classes in `train_on_batch`.
            classes = ops.reshape(ops.cast(y_true, "int32"), (-1,))
            return each(ops.one_hot(classes, y_pred.shape[-1], dtype=y_pred.dtype), y_pred)

    return OfClasses()
