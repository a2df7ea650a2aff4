"""The mean of a ticket's word vectors with logistic regression: what the vectors alone are worth."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from transect.text.classifiers import CLASSIFIERS, MODEL, Classifier, Fitted, Task
from transect.text.classifiers._graph import write_table_graph
from transect.text.classifiers._regression import regress, softmax
from transect.text.options import Options, checked


class _Options(Options):
    strength: float = Field(default=1.0, gt=0)
    iterations: int = Field(default=1000, ge=1)


@CLASSIFIERS.register("mean-vectors")
class MeanVectors(Classifier):
    """Means over words, each number brought to deviation 1 on the training part.

    A ticket without words has the mean 0. Options: `strength`, scikit-learn's C, and `iterations`, the most of them.
    """

    environment = "text"
    exports = True
    options = _Options

    def fit(self, task: Task) -> Fitted:
        """Fit, predict, and write the graph."""
        options = checked(_Options, task.options | task.hyperparameters, "options")
        vectors = task.vectors.astype(np.float64)
        train = _means(task.x["train"], vectors)
        deviation = train.std(axis=0)
        deviation[deviation == 0] = 1.0
        weights, bias, details = regress(
            train / deviation, task.y["train"], len(task.classes), options.strength, options.iterations
        )
        weights /= deviation[:, None]
        write_table_graph(task.out / MODEL, vectors @ weights, bias)
        return Fitted(
            probabilities={part: softmax(_means(task.x[part], vectors) @ weights + bias) for part in task.predicted},
            parameters=weights.size + bias.size,
            details=details,
        )


def _means(x: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the mean vector of each row (n, width); row by row, since all vectors at once are many."""
    means = np.zeros((len(x), vectors.shape[1]))
    for row, words in enumerate(x):
        there = words[words != 0]
        if len(there):
            means[row] = vectors[there].mean(axis=0)
    return means
