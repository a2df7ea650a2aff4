"""The baseline of all baselines: every ticket is of the most frequent class."""

from __future__ import annotations

import numpy as np

from transect.text.classifiers import CLASSIFIERS, Classifier, Fitted, Task


@CLASSIFIERS.register("majority")
class Majority(Classifier):
    """The shares of the classes in the training part, whatever a ticket says."""

    environment = "text"

    def fit(self, task: Task) -> Fitted:
        """Count."""
        counts = np.bincount(task.y["train"], minlength=len(task.classes))
        shares = (counts / counts.sum()).astype(np.float32)
        return Fitted(
            probabilities={part: np.tile(shares, (len(task.x[part]), 1)) for part in task.predicted},
            parameters=len(task.classes),
        )
