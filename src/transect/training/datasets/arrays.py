"""Arrays of the user's, in one NPZ file."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.training.datasets import DATASETS, LoadedDataset, Samples

_TOGETHER, _APART = {"x", "y"}, {"x_train", "y_train", "x_test", "y_test"}


def samples_of(arrays: dict[str, np.ndarray], path: Path, source: str) -> Samples:
    """Return arrays as samples: `x` and `y`, or these of a training and a test part, and `classes` if they have names.

    Real numbers are taken as they are, bytes as pixels in 0..1, other whole numbers as tokens. Whole numbers y, one for
    each sample, are classes. Raises BadInput for anything else.
    """
    names = arrays.keys() - {"classes"}
    if names not in (_TOGETHER, _APART):
        raise BadInput(
            f"{path}: holds {', '.join(sorted(arrays)) or 'nothing'}: expected x and y, or "
            "x_train, y_train, x_test and y_test; and `classes` if they have names"
        )
    test = None
    if scalars := sorted(name for name in names if not arrays[name].ndim):
        raise BadInput(f"{path}: {', '.join(scalars)} is one number: expected an axis of samples")
    if names == _APART:
        first = len(arrays["x_train"])
        _check_parts(arrays, path)
        x, y = (np.concatenate([arrays[f"{name}_train"], arrays[f"{name}_test"]]) for name in "xy")
        test = np.arange(first, len(x))
    else:
        x, y = arrays["x"], arrays["y"]
    if len(x) != len(y) or not len(x):
        raise BadInput(f"{path}: {len(x)} samples x for {len(y)} targets y: expected one for each")
    if x.dtype.kind not in "fiub" or not np.isfinite(x).all():
        raise BadInput(f"{path}: x is {x.dtype}: expected finite numbers")
    y, classes = _targets(y, arrays.get("classes"), path)
    if x.dtype.kind == "f":
        x = x.astype(np.float64)
    else:
        x = x / 255.0 if x.dtype == np.uint8 else x.astype(np.int64)
    return Samples(x=x, y=y, classes=classes, source=source, file=path, test=test)


def _check_parts(arrays: dict[str, np.ndarray], path: Path) -> None:
    """Raise BadInput unless the test part is like the training part: together they would hide that it is not."""
    for name in "xy":
        train, test = arrays[f"{name}_train"], arrays[f"{name}_test"]
        if (train.dtype.kind, train.shape[1:]) != (test.dtype.kind, test.shape[1:]):
            raise BadInput(
                f"{path}: {name}_train is {train.dtype} {train.shape}, {name}_test {test.dtype} {test.shape}: "
                "expected numbers of one kind, and the same shape of a sample"
            )
    for part in ("train", "test"):
        x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
        if len(x) != len(y) or not len(x):
            raise BadInput(f"{path}: {len(x)} samples x_{part} for {len(y)} targets y_{part}: expected one for each")


def _targets(y: np.ndarray, names: np.ndarray | None, path: Path) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return int64 or float64 targets, and the names of classes: of whole numbers, one for each sample."""
    if y.dtype.kind not in "fiub" or not np.isfinite(y).all():
        raise BadInput(f"{path}: y is {y.dtype} of shape {y.shape}: expected finite numbers")
    if y.dtype.kind == "f":
        y = y.astype(np.float64)
    if y.dtype.kind == "f" or y.ndim != 1:
        if names is not None:
            raise BadInput(
                f"{path}: names of classes, and y is {y.dtype} of shape {y.shape}: expected class numbers (n,)"
            )
        return y if y.dtype.kind == "f" else y.astype(np.int64), ()
    if y.min() < 0:
        raise BadInput(f"{path}: y has a class {y.min()}: expected class numbers from 0 on, or real numbers")
    count = int(y.max()) + 1
    classes = tuple(map(str, np.arange(count) if names is None else names))
    if len(classes) < count:
        raise BadInput(f"{path}: {len(classes)} names of classes, and y has a class {count - 1}")
    return y.astype(np.int64), classes


@DATASETS.register("arrays")
class Arrays(LoadedDataset):
    """Samples that a file holds, used as they are."""

    option_names: tuple[str, ...] = ("path",)
    paths = ("path",)

    def load(self, options: dict[str, Any]) -> Samples:
        """Read the file; nothing in it is run."""
        path = Path(options["path"])
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise BadInput(f"{path}: cannot be read as NPZ: {error}") from None
        return samples_of(arrays, path, path.name)

    def normalise(self, train: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Leave both as they are: the user has decided."""
        return train, other
