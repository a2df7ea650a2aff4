"""Datasets: where samples come from. One file each; registered by `@DATASETS.register`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from transect.domain.cell import Cell
from transect.domain.registry import Registry
from transect.training.layers import Shape

__all__ = ["DATASETS", "Dataset", "DerivedDataset", "Division", "Samples", "Stored", "StoredDataset"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """A whole dataset in memory: `x` (n, ...) float64 or, of tokens, int64; `y` (n,) class numbers.

    Without `classes`, `y` (n, ...) int64 are targets of another kind, such as next tokens.
    """

    x: np.ndarray
    y: np.ndarray
    classes: tuple[str, ...]
    source: str
    # The raw file that was read, whose checksum goes into the manifest.
    file: Path
    # Rows of the test part, where the samples come divided; None: to be drawn.
    test: np.ndarray | None = None


class Dataset(Protocol):
    """Loads samples. `options` are the workload's dataset options, e.g. a path.

    A dataset of any kind with `option_names` has no other options than those.
    """

    def load(self, options: dict[str, Any]) -> Samples:
        """Return all samples. Raises BadInput when they cannot be read."""
        ...

    def normalise(self, train: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scale both by what the training part alone tells."""
        ...


@runtime_checkable
class DerivedDataset(Protocol):
    """Makes its samples of what cells of other stages, `stages`, have left.

    `details` are what it reads of their records.
    """

    stages: tuple[str, ...]
    details: tuple[str, ...]

    def cells(self, options: dict[str, Any]) -> dict[str, Cell]:
        """Return those cells by role. Raises BadInput when the options cannot be used."""
        ...

    def load_from(self, options: dict[str, Any], folders: Mapping[str, Path]) -> Samples:
        """Return all samples, given each cell's folder by role. Raises BadInput as `Dataset.load`."""
        ...

    def normalise(self, train: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scale both by what the training part alone tells."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """What stands in the data stage's folder: samples `y` (n,), divided in `train` and `test`.

    `shape` is that of one sample; `files` are the names of what lies beside data.npz; `mean` and
    `deviation` per channel belong to samples that are stored as bytes.
    """

    y: np.ndarray
    train: np.ndarray
    test: np.ndarray
    shape: tuple[int, ...]
    classes: tuple[str, ...]
    source: str
    source_sha256: str
    mean: np.ndarray | None = None
    deviation: np.ndarray | None = None
    files: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)


# Takes the shape of one sample, class numbers (n,) and class names; returns the numbers of the
# training and of the test samples. Raises BadInput when they do not fit the workload.
Division = Callable[[Shape, np.ndarray, tuple[str, ...]], tuple[np.ndarray, np.ndarray]]


@runtime_checkable
class StoredDataset(Protocol):
    """Writes its samples as bytes, in pieces: `x_train.npy` and `x_test.npy`, uint8 (n, C, H, W).

    `mean` and `deviation` are those of the training part scaled to 0..1, per channel. `files` says
    whether FileReader can decode the samples again, from what `images.FILE_LIST` lists; `paths`
    names the options that are files or folders: a study gives them relative to its own file. A dataset with
    `without(options, name)` is asked for other options where such a path is not there; None: it is needed.
    """

    files: bool
    paths: tuple[str, ...]

    def check(self, options: dict[str, Any], sample: Shape) -> None:
        """Raise BadInput when the options cannot be used; reads no file."""
        ...

    def store(self, options: dict[str, Any], sample: Shape, divide: Division, out: Path) -> Stored:
        """Write the arrays into `out`. Raises BadInput when the samples cannot be read."""
        ...


DATASETS: Registry[Dataset | DerivedDataset | StoredDataset] = Registry("dataset", "transect.training.datasets")
