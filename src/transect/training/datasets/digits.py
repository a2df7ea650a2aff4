"""Handwritten digits of 8 x 8 pixels, bundled with scikit-learn."""

from __future__ import annotations

import numpy as np

from transect.training.datasets import DATASETS
from transect.training.datasets._bundled import Bundled


@DATASETS.register("digits")
class Digits(Bundled):
    """1,797 samples of shape (1, 8, 8)."""

    name, file, source = "digits", "digits.csv.gz", "E. Alpaydin and C. Kaynak, 1998"

    def shaped(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(-1, 1, 8, 8)

    def normalise(self, train: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One mean and deviation over all pixels: border pixels are constant zero."""
        mean, deviation = train.mean(), train.std()
        return (train - mean) / deviation, (other - mean) / deviation
