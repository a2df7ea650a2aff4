"""Datasets: where samples come from. One file each; registered by `@DATASETS.register`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from transect.domain.registry import Registry

__all__ = ["DATASETS", "Dataset", "Samples"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """A whole dataset in memory: `x` (n, ...) float64, `y` (n,) int64 class numbers."""

    x: np.ndarray
    y: np.ndarray
    classes: tuple[str, ...]
    source: str
    # The raw file that was read, whose checksum goes into the manifest.
    file: Path


class Dataset(Protocol):
    """Loads samples. `options` are the workload's dataset options, e.g. a path."""

    def load(self, options: dict[str, Any]) -> Samples:
        """Return all samples. Raises BadInput when they cannot be read."""
        ...

    def normalise(self, train: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scale both by what the training part alone tells."""
        ...


DATASETS: Registry[Dataset] = Registry("dataset", "transect.training.datasets")
