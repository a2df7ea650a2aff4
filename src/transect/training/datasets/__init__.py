"""Datasets: where samples come from. One file each; registered by `@DATASETS.register`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.registry import Plugin, Registry
from transect.training.images import FileReader
from transect.training.layers import Shape

__all__ = [
    "DATASETS",
    "Dataset",
    "DerivedDataset",
    "Division",
    "LoadedDataset",
    "Reader",
    "Samples",
    "Stored",
    "StoredDataset",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """A whole dataset in memory: `x` (n, ...) float64 or, of tokens, int64; `y` (n,) class numbers.

    Without `classes`, `y` (n, ...) int64 or float64 are targets of another kind, such as next tokens or real numbers.
    """

    x: np.ndarray
    y: np.ndarray
    classes: tuple[str, ...]
    source: str
    # The raw file that was read, whose checksum goes into the manifest.
    file: Path
    # Rows of the test part, where the samples come divided; None: to be drawn.
    test: np.ndarray | None = None
    # Rows that neither train nor test: retraining is on them. None: it is on those that trained.
    device: np.ndarray | None = None
    # Of each row of `device` the client that it belongs to, in federated learning; None: nobody says.
    clients: np.ndarray | None = None


class Reader(Protocol):
    """Reads samples again, ahead of the steps that need them."""

    def read(self, steps: list[tuple[int, np.ndarray]]) -> Iterator[np.ndarray]:
        """Yield the samples (n, ...) of each step, given its epoch and their numbers in the training part."""

    def close(self) -> None:
        """End what reads ahead. May be called again."""


class Dataset(Plugin, ABC):
    """Where samples come from: `LoadedDataset`, `DerivedDataset` or `StoredDataset`.

    `options` are the workload's dataset options, e.g. a path.
    """

    # Where it is read: a folder below `envs/`.
    environment: str = "base"
    # Names of all options that it has; None: any.
    option_names: tuple[str, ...] | None = None
    # Options that are files or folders: a study gives them relative to its own file.
    paths: tuple[str, ...] = ()
    # Whether samples can be read again in each step: `reader`.
    files: bool = False

    def check(self, options: dict[str, Any], sample: Shape) -> None:
        """Raise BadInput when the options cannot be used for samples of that shape, () if unknown; reads no file."""

    def reader(self, folder: Path, options: dict[str, Any], repeat: int, dtype: Any, threads: int) -> Reader:
        """Return what reads the training part's samples again; `folder` is the data stage's. Raises BadInput without one."""
        raise BadInput(f"{type(self).__name__} says `files` and has no `reader`: expected one that reads samples again")

    def without(self, options: dict[str, Any], name: str) -> dict[str, Any] | None:
        """Return options to go on with when what the path `name` leads to is not there; None: it is needed."""
        return None


class _Normalised(Dataset):
    @abstractmethod
    def normalise(self, train: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scale both by what the training part alone tells."""


class LoadedDataset(_Normalised):
    """Loads samples that fit in memory."""

    @abstractmethod
    def load(self, options: dict[str, Any]) -> Samples:
        """Return all samples. Raises BadInput when they cannot be read."""


class DerivedDataset(_Normalised):
    """Makes its samples of what cells of other stages have left."""

    # Those stages.
    stages: tuple[str, ...] = ()
    # What it reads of their records' details.
    details: tuple[str, ...] = ()

    @abstractmethod
    def cells(self, options: dict[str, Any]) -> dict[str, Cell]:
        """Return those cells by role. Raises BadInput when the options cannot be used."""

    @abstractmethod
    def load_from(self, options: dict[str, Any], folders: Mapping[str, Path]) -> Samples:
        """Return all samples, given each cell's folder by role. Raises BadInput as `LoadedDataset.load`."""


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


# Takes the shape of one sample, class numbers (n,), class names, and the numbers of the samples of the set's own test part or
# None; returns those of the training and of the test samples. Raises BadInput when they do not fit the workload.
Division = Callable[[Shape, np.ndarray, tuple[str, ...], np.ndarray | None], tuple[np.ndarray, np.ndarray]]


class StoredDataset(Dataset):
    """Writes its samples as bytes, in pieces: `x_train.npy` and `x_test.npy`, uint8 (n, C, H, W).

    `mean` and `deviation` are those of the training part scaled to 0..1, per channel.
    """

    def reader(self, folder: Path, options: dict[str, Any], repeat: int, dtype: Any, threads: int) -> Reader:
        """Decode the image files that its `images.FILE_LIST` lists."""
        return FileReader(folder, dtype, threads=threads)

    def few(self, options: dict[str, Any]) -> Samples:
        """Return a few samples as they will be, to try a module of the user's with. Raises BadInput without any."""
        raise BadInput(f"{type(self).__name__} has no `few`: expected samples to try a module with")

    @abstractmethod
    def store(self, options: dict[str, Any], sample: Shape, divide: Division, out: Path) -> Stored:
        """Write the arrays into `out`. Raises BadInput when the samples cannot be read."""


DATASETS: Registry[Dataset] = Registry("dataset", "transect.training.datasets", Dataset)
