"""The losses of `losses` in TensorFlow's own functions, for class numbers."""

from __future__ import annotations

from typing import Any

from transect.training.workloads import Parameters

LOSSES = ("cross-entropy", "mse", "huber", "binary-cross-entropy")


def mean_loss(tf: Any, rule: Parameters, outputs: Any, y: Any) -> Any:
    """Return the mean loss of outputs (n, classes) and class numbers (n,). Raises KeyError for an unknown loss."""
    if rule.loss == "cross-entropy" and not rule.label_smoothing:
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=outputs))
    wanted = tf.one_hot(y, outputs.shape[1], dtype=outputs.dtype)
    distance = outputs - wanted

    def smoothed() -> Any:
        share = rule.label_smoothing / outputs.shape[1]
        labels = wanted * (1 - rule.label_smoothing) + share
        return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=outputs))

    def huber() -> Any:
        cut = tf.clip_by_value(distance, -rule.delta, rule.delta)
        return tf.reduce_mean(cut * (distance - 0.5 * cut))

    losses: dict[str, Any] = {
        "cross-entropy": smoothed,
        "mse": lambda: 0.5 * tf.reduce_mean(tf.reduce_sum(distance * distance, 1)),
        "huber": huber,
        "binary-cross-entropy": lambda: tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=wanted, logits=outputs)
        ),
    }
    return losses[rule.loss]()
