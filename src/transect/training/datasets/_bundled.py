"""What the datasets bundled with scikit-learn share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from transect.training.datasets import LoadedDataset, Samples


class Bundled(LoadedDataset):
    option_names: tuple[str, ...] = ()
    # The name within scikit-learn, its file, and whose it is.
    name = file = source = ""

    def load(self, options: dict[str, Any]) -> Samples:
        """Read the copy inside scikit-learn."""
        from sklearn import datasets

        bunch = getattr(datasets, f"load_{self.name}")()
        return Samples(
            x=self.shaped(np.asarray(bunch.data, np.float64), options),
            y=np.asarray(bunch.target, np.int64),
            classes=tuple(str(name) for name in bunch.target_names),
            source=f"scikit-learn bundled {self.name} ({self.source})",
            file=Path(datasets.__file__).parent / "data" / self.file,
        )

    def shaped(self, x: np.ndarray, options: dict[str, Any]) -> np.ndarray:
        return x
