"""Handwritten digits: 1,797 images of 8 x 8 pixels, 10 classes; bundled with scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.datasets import DATASETS, LoadedDataset, Samples, bundled_file


@DATASETS.register("digits")
class Digits(LoadedDataset):
    """1,797 samples of shape (1, 8, 8)."""

    option_names = ()

    def load(self, options: dict[str, Any]) -> Samples:
        from sklearn.datasets import load_digits

        bunch = load_digits()
        return Samples(
            x=np.asarray(bunch.images, np.float64)[:, None, :, :],
            y=np.asarray(bunch.target, np.int64),
            classes=tuple(str(name) for name in bunch.target_names),
            source="scikit-learn bundled digits (E. Alpaydin and C. Kaynak, 1998)",
            file=bundled_file("digits.csv.gz"),
        )

    def normalise(self, train: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One mean and deviation over all pixels: border pixels are constant zero."""
        mean, deviation = train.mean(), train.std()
        return (train - mean) / deviation, (other - mean) / deviation
