"""The data stage: split, normalise, initial weights and batch order for every repeat.

`python -m transect.training.prepare --spec … --out …` writes `data.npz`, `start-R.npz` for every
repeat R (initial weights and batch order: the same for every framework), and `manifest.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.files import sha256_file, write_atomic
from transect.training.datasets import DATASETS
from transect.training.layers import initial_weights, shapes
from transect.training.worker import error_facts
from transect.training.workloads import WORKLOADS

__all__ = ["main", "prepare", "split"]


def split(y: np.ndarray, test_fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return train and test indices, stratified by class, from a stored seed."""
    generator = np.random.default_rng(seed)
    train, test = [], []
    for label in np.unique(y):
        members = generator.permutation(np.flatnonzero(y == label))
        cut = max(1, round(len(members) * test_fraction))
        test.append(members[:cut])
        train.append(members[cut:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def prepare(spec: dict[str, Any], out: Path) -> dict[str, Any]:
    """Write the arrays; return the manifest. Raises BadInput when the data does not fit."""
    name, seed, repeats = spec["workload"], spec["seed"], spec["repeats"]
    workload = WORKLOADS.get(name)
    # The spec has only what the data depends on; the rest of the parameters does not matter here.
    parameters = workload.defaults.model_copy(update=spec["parameters"])
    dataset = DATASETS.get(workload.dataset)
    samples = dataset.load(parameters.dataset_options)
    if samples.x.shape[1:] != workload.sample:
        raise BadInput(
            f"{samples.file}: samples have shape {samples.x.shape[1:]}, "
            f"{name} takes {workload.sample}"
        )
    outputs = shapes(workload.layers, workload.sample)[-1]
    if outputs != (len(samples.classes),):
        raise BadInput(f"{name} ends in {outputs} outputs for {len(samples.classes)} classes")
    train, test = split(samples.y, parameters.test_fraction, seed)
    if len(train) < parameters.batch:
        raise BadInput(
            f"{name}: batch {parameters.batch} exceeds the {len(train)} training samples"
        )
    x_train, x_test = dataset.normalise(samples.x[train], samples.x[test])
    out.mkdir(parents=True, exist_ok=True)
    np.savez(
        out / "data.npz",
        x_train=x_train,
        y_train=samples.y[train],
        x_test=x_test,
        y_test=samples.y[test],
    )
    for repeat in range(repeats):
        generator = np.random.default_rng([seed, repeat])
        order = np.stack([generator.permutation(len(train)) for _ in range(parameters.epochs)])
        weights = initial_weights(workload.layers, seed + repeat)
        np.savez(out / f"start-{repeat}.npz", order=order, **weights)  # type: ignore[arg-type]
    files = ["data.npz", *(f"start-{r}.npz" for r in range(repeats))]
    return {
        "workload": name,
        "dataset": workload.dataset,
        "source": samples.source,
        "source_sha256": sha256_file(samples.file),
        "shape": list(samples.x.shape),
        "train": len(train),
        "test": len(test),
        "classes": list(samples.classes),
        "class_balance": {
            part: {
                samples.classes[label]: int(count)
                for label, count in enumerate(
                    np.bincount(samples.y[index], minlength=len(samples.classes))
                )
            }
            for part, index in (("train", train), ("test", test))
        },
        "seed": seed,
        "seeds_of_repeats": [seed + repeat for repeat in range(repeats)],
        "normalised_on": "training part only",
        "files": {file: sha256_file(out / file) for file in files},
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the data stage of one workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        manifest = prepare(json.loads(given.spec.read_text()), given.out)
        result: dict[str, Any] = {"status": "ok", "details": manifest}
        code = 0
    except Exception as error:
        traceback.print_exc()
        facts = error_facts(error)
        if isinstance(error, BadInput):
            facts["cause"] = "bad-input"
        result = {"status": "failed", **facts}
        code = 1
    write_atomic(given.out / "result.json", json.dumps(result, indent=1))
    return code


if __name__ == "__main__":
    sys.exit(main())
