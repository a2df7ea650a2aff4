"""Fisher's iris, bundled with scikit-learn."""

from __future__ import annotations

import numpy as np

from transect.training.datasets import DATASETS
from transect.training.datasets._bundled import Bundled


@DATASETS.register("iris")
class Iris(Bundled):
    """150 samples of shape (4,)."""

    name, file, source = "iris", "iris.csv", "R. A. Fisher, 1936"

    def normalise(self, train: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Zero mean and unit variance per feature of the training part."""
        mean, deviation = train.mean(axis=0), train.std(axis=0)
        return (train - mean) / deviation, (other - mean) / deviation
