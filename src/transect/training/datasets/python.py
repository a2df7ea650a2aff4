"""Samples that a function of the user's gives: arrays, or datasets as torch has them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import FAULTS, BadInput
from transect.training.datasets import DATASETS, Reader, Samples
from transect.training.datasets.arrays import Arrays, samples_of


@DATASETS.register("python")
class PythonDataset(Arrays):
    """What `name` in the file `path` returns for `arguments`: (x, y) or a mapping of arrays as in an NPZ file; a dataset
    of pairs or its DataLoader; or two of these, for training and for the test. Every pair is asked for once, in order.
    """

    option_names = ("path", "name", "arguments")
    environment = "torch"
    files = True

    def load(self, options: dict[str, Any]) -> Samples:
        """Call the function. Raises BadInput naming it where it raises or gives something else."""
        path, name = Path(options["path"]), options["name"]
        make_dataset = import_module("transect.training.frameworks._module_files").make_dataset
        where = f"{path}:{name}"
        try:
            arrays = arrays_of(make_dataset(options), where)
        except BadInput:
            raise
        except FAULTS as error:
            raise BadInput(f"{where}: {type(error).__name__}: {error}") from error
        return samples_of(arrays, path, where)

    def reader(self, folder: Path, options: dict[str, Any], repeat: int, dtype: Any, threads: int) -> Reader:
        """Ask the dataset again, with the workers of its loader where it has one."""
        module = import_module("transect.training.frameworks._dataset_reader")
        reader: Reader = module.DatasetReader(options, repeat, dtype)
        return reader


def arrays_of(given: Any, where: str) -> dict[str, np.ndarray]:
    """Return what was given as arrays by name."""
    if isinstance(given, Mapping):
        return {str(name): np.asarray(array) for name, array in given.items()}
    if not isinstance(given, tuple):
        return dict(zip("xy", _pairs(given, where), strict=True))
    if _are_arrays(given):
        return {"x": np.asarray(given[0]), "y": np.asarray(given[1])}
    if len(given) == 2:
        (x, y), (x_test, y_test) = (_pairs(part, where) for part in given)
        return {"x_train": x, "y_train": y, "x_test": x_test, "y_test": y_test}
    raise BadInput(f"{where}: gives {len(given)} parts: expected arrays x and y, or a training and a test dataset")


def _are_arrays(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and all(hasattr(part, "shape") for part in given)


def _pairs(dataset: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return all samples of a dataset, or of a pair of arrays, and their targets."""
    if _are_arrays(dataset):
        return np.asarray(dataset[0]), np.asarray(dataset[1])
    dataset = dataset.dataset if hasattr(dataset, "num_workers") else dataset
    if not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
        raise BadInput(
            f"{where}: gives a {type(dataset).__name__}: expected arrays, or a dataset with a length and an index"
        )
    pairs = [dataset[number] for number in range(len(dataset))]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise BadInput(f"{where}: expected pairs of a sample and its target, {len(dataset)} of them")
    x, y = ([np.asarray(part) for part in column] for column in zip(*pairs, strict=True))
    if len(shapes := {sample.shape for sample in x}) > 1:
        raise BadInput(
            f"{where}: samples have {len(shapes)} shapes, such as {' and '.join(map(str, sorted(shapes)[:2]))}"
        )
    return np.stack(x), np.stack(y)
