"""Logistic regression of scikit-learn on what is known of each ticket, also where classes are missing."""

from __future__ import annotations

from typing import Any

import numpy as np


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return probabilities (n, classes) float32."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    shares: np.ndarray = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    return shares


# The logit of a class that no training ticket has: its probability is 0 in float32.
_NEVER = -1e4


def regress(
    features: Any, y: np.ndarray, classes: int, strength: float, iterations: int
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return weights (features, classes), bias (classes,) and details of the fit.

    `features` (n, f) may be sparse; `strength` is scikit-learn's C. A class that is not among `y` gets
    a probability of 0.
    """
    from sklearn.linear_model import LogisticRegression

    seen = np.unique(y)
    weights = np.zeros((features.shape[1], classes))
    bias = np.full(classes, _NEVER)
    if len(seen) == 1:
        bias[seen] = 0.0
        return weights, bias, {"iterations": 0, "converged": True}
    fitted = LogisticRegression(C=strength, max_iter=iterations).fit(features, y)
    if len(seen) == 2:
        # scikit-learn has one row for two classes: that of the second against the first.
        weights[:, seen[1]], bias[seen] = fitted.coef_[0], (0.0, fitted.intercept_[0])
    else:
        weights[:, seen], bias[seen] = fitted.coef_.T, fitted.intercept_
    done = int(fitted.n_iter_.max())
    return weights, bias, {"iterations": done, "converged": done < iterations}
