"""The data stage: split, normalise, initial weights and batch order for every repeat.

Leaves `data.npz`,
`start-R.npz` for every repeat R (initial weights and batch order: the same for every framework), and
`result.json`. Images lie beside as bytes, `x_train.npy` and `x_test.npy`, with the list of their files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.files import sha256_file
from transect.training.datasets import DATASETS, DerivedDataset, Division, LoadedDataset, Samples, Stored, StoredDataset
from transect.training.layers import Shape
from transect.training.models import Arrays, Model
from transect.training.module_model import MODULE_FACTS
from transect.training.workloads import WORKLOADS, Parameters, model_of


def split(y: np.ndarray, test_fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return train and test indices, stratified by class (n,), from a stored seed."""
    generator = np.random.default_rng(seed)
    train, test = [], []
    for label in np.unique(y):
        members = generator.permutation(np.flatnonzero(y == label))
        cut = max(1, round(len(members) * test_fraction))
        test.append(members[:cut])
        train.append(members[cut:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def _divide(
    model: Model,
    name: str,
    parameters: Parameters,
    seed: int,
    source: str,
    shape: Shape,
    y: np.ndarray,
    classes: tuple[str, ...],
    given: np.ndarray | None = None,
    kept: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Check that samples fit the workload's model, then split them; `given` is a test part, `kept` in neither."""
    try:
        model.check_data(shape, y, classes)
    except BadInput as error:
        raise BadInput(f"{source} for {name}: {error}") from None
    rows = np.arange(len(y)) if kept is None else np.setdiff1d(np.arange(len(y)), kept)
    if given is None:
        # Targets that are no classes have nothing to be stratified by.
        strata = y[rows] if classes else np.zeros(len(rows), np.int64)
        train, test = (rows[part] for part in split(strata, parameters.test_fraction, seed))
    else:
        train, test = np.setdiff1d(rows, given), given
    if len(train) < parameters.batch:
        raise BadInput(f"{name}: batch {parameters.batch} exceeds the {len(train)} training samples")
    return train, test


def _load(
    dataset: LoadedDataset | DerivedDataset,
    samples: Samples,
    model: Model,
    divide: Callable[..., tuple[np.ndarray, np.ndarray]],
    out: Path,
) -> Stored:
    """Write the arrays of a dataset that fits in memory, normalised."""
    if (samples.x.dtype.kind == "f") != (model.inputs == "float"):
        raise BadInput(f"its samples are {samples.x.dtype}, the model takes {model.inputs}")
    train, test = divide(samples.x.shape[1:], samples.y, samples.classes, samples.test, samples.device)
    x_train, x_test = dataset.normalise(samples.x[train], samples.x[test])
    out.mkdir(parents=True, exist_ok=True)
    arrays = {"x_train": x_train, "y_train": samples.y[train], "x_test": x_test, "y_test": samples.y[test]}
    if (device := samples.device) is not None:
        if not len(device):
            raise BadInput("the data set's part for devices has no rows: expected some, or no such part")
        arrays |= {"x_device": dataset.normalise(samples.x[train], samples.x[device])[1], "y_device": samples.y[device]}
        if samples.clients is not None:
            arrays["client_device"] = samples.clients
    # Which samples of the dataset they are, where a step may ask for them again.
    rows = {"train_rows": train} if dataset.files else {}
    np.savez(out / "data.npz", **arrays, **rows)  # type: ignore[arg-type]
    return Stored(
        y=samples.y,
        train=train,
        test=test,
        shape=samples.x.shape[1:],
        classes=samples.classes,
        source=samples.source,
        source_sha256=sha256_file(samples.file) if samples.file.is_file() else "",
        details={} if device is None else {"device": len(device)},
    )


def _store(dataset: StoredDataset, options: dict[str, Any], sample: Shape, divide: Division, out: Path) -> Stored:
    """Let the dataset write its bytes, and what is small beside them."""
    stored = dataset.store(options, sample, divide, out)
    assert stored.mean is not None and stored.deviation is not None
    np.savez(
        out / "data.npz",
        y_train=stored.y[stored.train],
        y_test=stored.y[stored.test],
        mean=stored.mean,
        deviation=stored.deviation,
    )
    return stored


def drawn_weights(inspected: Path, repeat: int) -> Arrays:
    """Return what the stage `inspect` drew for a repeat."""
    with np.load(inspected / f"weights-{repeat}.npz") as file:
        return {name: file[name] for name in file.files}


def run(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Make one cell; return its result."""
    return {"details": prepare(spec, out, folders)}


def prepare(spec: dict[str, Any], out: Path, folders: Mapping[str, Path] | None = None) -> dict[str, Any]:
    """Write the arrays; return the manifest. Raises BadInput when the data does not fit.

    `folders` are those of the cells that the dataset takes, by role.
    """
    name, seed, repeats = spec["workload"], spec["seed"], spec["repeats"]
    workload = WORKLOADS.get(name)
    inspected = (folders or {}).get("module")
    model = model_of(workload, inspected)
    # The spec has only what the data depends on; the rest of the parameters does not matter here.
    parameters = workload.defaults.model_copy(update=spec["parameters"])
    dataset, options = DATASETS.get(workload.dataset), parameters.dataset_options
    divide = partial(_divide, model, name, parameters, seed, workload.dataset)
    if isinstance(dataset, StoredDataset):
        data = _store(dataset, options, model.sample, divide, out)
    elif isinstance(dataset, DerivedDataset):
        data = _load(dataset, dataset.load_from(options, folders or {}), model, divide, out)
    else:
        assert isinstance(dataset, LoadedDataset)
        data = _load(dataset, dataset.load(options), model, divide, out)
    for repeat in range(repeats):
        generator = np.random.default_rng([seed, repeat])
        order = np.stack([generator.permutation(len(data.train)) for _ in range(parameters.epochs)])
        weights = model.initial_weights(seed + repeat) if inspected is None else drawn_weights(inspected, repeat)
        np.savez(out / f"start-{repeat}.npz", order=order, **weights)  # type: ignore[arg-type]
    if inspected is not None:
        shutil.copyfile(inspected / MODULE_FACTS, out / MODULE_FACTS)
    files = ["data.npz", *data.files, *(f"start-{r}.npz" for r in range(repeats))]
    return {
        "workload": name,
        "dataset": workload.dataset,
        "source": data.source,
        "source_sha256": data.source_sha256,
        "shape": [len(data.y), *data.shape],
        "train": len(data.train),
        "test": len(data.test),
        "classes": list(data.classes),
        "class_balance": {}
        if not data.classes
        else {
            part: {
                data.classes[label]: int(count)
                for label, count in enumerate(np.bincount(data.y[index], minlength=len(data.classes)))
            }
            for part, index in (("train", data.train), ("test", data.test))
        },
        "seed": seed,
        "seeds_of_repeats": [seed + repeat for repeat in range(repeats)],
        "normalised_on": "training part only",
        "files": {file: sha256_file(out / file) for file in files},
        **data.details,
    }
