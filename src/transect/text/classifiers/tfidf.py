"""TF-IDF with logistic regression: which words there are, not in which order."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from transect.text.classifiers import CLASSIFIERS, MODEL, Classifier, Fitted, Task
from transect.text.classifiers._graph import write_table_graph
from transect.text.classifiers._regression import regress, softmax
from transect.text.options import Options, checked


class _Options(Options):
    strength: float = Field(default=10.0, gt=0)
    iterations: int = Field(default=1000, ge=1)


@CLASSIFIERS.register("tfidf")
class TfIdf(Classifier):
    """A word counts as often as it is there, times ln((1 + n) / (1 + tickets with it)) + 1; rows have norm 1.

    Fitted to the training part (scikit-learn's TfidfTransformer). Options: `strength`, scikit-learn's
    C, and `iterations`, the most of them.
    """

    environment = "text"
    exports = True
    options = _Options

    def fit(self, task: Task) -> Fitted:
        """Fit, predict, and write the graph."""
        from sklearn.feature_extraction.text import TfidfTransformer

        options = checked(_Options, task.options | task.hyperparameters, "options")
        words = len(task.vectors)
        scale = TfidfTransformer().fit(_counts(task.x["train"], words))
        weights, bias, details = regress(
            scale.transform(_counts(task.x["train"], words)),
            task.y["train"],
            len(task.classes),
            options.strength,
            options.iterations,
        )
        probabilities = {
            part: softmax(scale.transform(_counts(task.x[part], words)) @ weights + bias) for part in task.predicted
        }
        factors = scale.idf_.copy()
        factors[0] = 0.0
        write_table_graph(task.out / MODEL, factors[:, None] * weights, bias, factors=factors)
        return Fitted(probabilities=probabilities, parameters=weights.size + bias.size, details=details)


def _counts(x: np.ndarray, words: int) -> Any:
    """Return how often each word is in each row, sparse (n, words); padding is none."""
    from scipy.sparse import coo_array

    rows, places = np.nonzero(x)
    amounts = np.ones(len(rows))
    return coo_array((amounts, (rows, x[rows, places])), shape=(len(x), words)).tocsr()
