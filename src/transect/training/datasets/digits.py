"""Handwritten digits of 8 x 8 pixels, bundled with scikit-learn; enlarged where a workload takes larger ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.training.datasets import DATASETS
from transect.training.datasets._bundled import Bundled
from transect.training.layers import Shape

# Height and width in pixels as they are bundled, and how often a pixel may stand in a row.
SIZE, MOST = 8, 64


@DATASETS.register("digits")
class Digits(Bundled):
    """1,797 samples of shape (1, 8, 8); with `enlarge: N` each pixel stands N x N times, without any interpolation."""

    name, file, source = "digits", "digits.csv.gz", "E. Alpaydin and C. Kaynak, 1998"
    option_names = ("enlarge",)

    def check(self, options: dict[str, Any], sample: Shape) -> None:
        times = options.get("enlarge", 1)
        if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= MOST:
            raise BadInput(
                f"option 'enlarge' of dataset digits: expected a whole number from 1 to {MOST}, given {times!r}"
            )
        given = (1, SIZE * times, SIZE * times)
        if sample and sample != given:
            raise BadInput(
                f"option 'enlarge' of dataset digits: {times} gives samples {given}, the workload takes {sample}"
            )

    def shaped(self, x: np.ndarray, options: dict[str, Any]) -> np.ndarray:
        times = options.get("enlarge", 1)
        return x.reshape(-1, 1, SIZE, SIZE).repeat(times, axis=2).repeat(times, axis=3)

    def normalise(self, train: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One mean and deviation over all pixels: border pixels are constant zero."""
        mean, deviation = train.mean(), train.std()
        return (train - mean) / deviation, (other - mean) / deviation
