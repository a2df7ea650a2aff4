"""Fisher's iris: 150 flowers, 4 lengths, 3 species; bundled with scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.datasets import DATASETS, LoadedDataset, Samples, bundled_file


@DATASETS.register("iris")
class Iris(LoadedDataset):
    """150 samples of shape (4,)."""

    option_names = ()

    def load(self, options: dict[str, Any]) -> Samples:
        from sklearn.datasets import load_iris

        bunch = load_iris()
        return Samples(
            x=np.asarray(bunch.data, np.float64),
            y=np.asarray(bunch.target, np.int64),
            classes=tuple(str(name) for name in bunch.target_names),
            source="scikit-learn bundled iris (R. A. Fisher, 1936)",
            file=bundled_file("iris.csv"),
        )

    def normalise(self, train: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, deviation = train.mean(axis=0), train.std(axis=0)
        return (train - mean) / deviation, (other - mean) / deviation
