"""The baseline of all baselines: every ticket is of the most frequent class."""

from __future__ import annotations

import numpy as np

from transect.text.classifiers import CLASSIFIERS, Fitted, Task
from transect.text.classifiers._options import NoKnobs


@CLASSIFIERS.register("majority")
class Majority(NoKnobs):
    """The shares of the classes in the training part, whatever a ticket says."""

    environment = "text"
    exports = False

    def fit(self, task: Task) -> Fitted:
        """Count."""
        counts = np.bincount(task.y["train"], minlength=len(task.classes))
        shares = (counts / counts.sum()).astype(np.float32)
        return Fitted(
            probabilities={part: np.tile(shares, (len(task.x[part]), 1)) for part in task.told},
            parameters=len(task.classes),
        )
