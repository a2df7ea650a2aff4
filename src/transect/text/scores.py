"""Scores of probabilities, given the true classes: (n, classes) float32 and (n,) class numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

# A class that was predicted to be impossible counts as this, so that one ticket does not make a loss infinite.
MIN_PROBABILITY = 1e-7
_BINS = 10
_THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(20))


def places_of(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the place (n,) of each true class among all by probability, 0 for the likeliest.

    Of two equally likely classes the one with the smaller number comes first, as for `argmax`.
    """
    true_class = probabilities[np.arange(len(y)), y][:, None]
    numbers = np.arange(probabilities.shape[1])
    before = (probabilities > true_class) | ((probabilities == true_class) & (numbers < y[:, None]))
    places: np.ndarray = before.sum(axis=1)
    return places


def accuracy_at(probabilities: np.ndarray, y: np.ndarray, k: int) -> float:
    """Return the share of tickets whose class is among the `k` likeliest."""
    return float((places_of(probabilities, y) < k).mean())


def confusion(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return how many tickets of each class (rows) were predicted to be of each (columns)."""
    classes = probabilities.shape[1]
    pairs = y * classes + probabilities.argmax(axis=1)
    return np.bincount(pairs, minlength=classes**2).reshape(classes, classes)


def macro_f1(table: np.ndarray) -> float:
    """Return the mean over classes of the harmonic mean of precision and recall.

    Over classes that occur or were predicted; `table` as `confusion` gives it.
    """
    right = np.diag(table)
    either = table.sum(axis=0) + table.sum(axis=1)
    there = either > 0
    return float((2 * right[there] / either[there]).mean())


def log_loss(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Return the mean of -ln of the true class's probability, which counts as at least `MIN_PROBABILITY`."""
    true_class = probabilities[np.arange(len(y)), y].astype(np.float64)
    # Not -0.0 where all are predicted with certainty.
    return abs(float(np.log(np.maximum(true_class, MIN_PROBABILITY)).mean()))


def calibration(probabilities: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    """Return for ten equal ranges of confidence how many tickets there are, and how many are right.

    `confidence` and `accuracy` are means, None where a range has no tickets (C. Guo et al., "On
    calibration of modern neural networks", ICML 2017).
    """
    confidence = probabilities.max(axis=1).astype(np.float64)
    right = probabilities.argmax(axis=1) == y
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    ranges = []
    for number in range(_BINS):
        there = bins == number
        tickets = int(there.sum())
        ranges.append(
            {
                "low": number / _BINS,
                "high": (number + 1) / _BINS,
                "tickets": tickets,
                "confidence": float(confidence[there].mean()) if tickets else None,
                "accuracy": float(right[there].mean()) if tickets else None,
            }
        )
    return ranges


def calibration_error(ranges: list[dict[str, Any]]) -> float:
    """Return the mean over tickets of |confidence - accuracy| of their range."""
    there = [row for row in ranges if row["tickets"]]
    total = sum(row["tickets"] for row in there)
    gaps = (row["tickets"] * abs(row["confidence"] - row["accuracy"]) for row in there)
    return float(sum(gaps) / total)


def answers(probabilities: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    """Return, for thresholds, the share of tickets that are answered and how many of these are right.

    Below the threshold the honest answer is "I do not know". `accuracy` is None where none is answered.
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == y
    by_threshold = []
    for threshold in _THRESHOLDS:
        answered = confidence >= threshold
        accuracy = float(right[answered].mean()) if answered.any() else None
        by_threshold.append({"threshold": threshold, "answered": float(answered.mean()), "accuracy": accuracy})
    return by_threshold
