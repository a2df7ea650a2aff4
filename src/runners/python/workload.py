"""What the baselines are given instead of an ONNX file: a workload of transect and its weights."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from tensors import BadInput


def read_model(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the model of the workload that `{"workload", "weights"}` names, and its arrays by neutral name.

    To be called before a framework is imported, which takes seconds. Raises BadInput naming the
    file, also for arrays that are not those of the model.
    """
    from transect.training.workloads import WORKLOADS, model_of

    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        model = model_of(WORKLOADS.get(told["workload"]))
        with np.load(path.parent / told["weights"]) as file:
            weights = {name: file[name] for name in file.files}
    except (OSError, EOFError, LookupError, TypeError, ValueError, RecursionError, zipfile.BadZipFile) as error:
        raise BadInput(f'{path}: expected {{"workload", "weights"}}: {type(error).__name__}: {error}') from error
    wanted = {weight.name: weight.shape for weight in model.weight_shapes()}
    given = {name: array.shape for name, array in weights.items()}
    if wrong := sorted(name for name in wanted | given if wanted.get(name) != given.get(name)):
        name = wrong[0]
        raise BadInput(
            f"{path}: weights do not fit the model: '{name}' has shape {given.get(name, 'none')}, "
            f"expected {wanted.get(name, 'no such weight')}"
        )
    return model, weights


def input_dtype(model: Any) -> str:
    """Return the type of the numbers that the model takes."""
    return "float32" if model.inputs == "float" else str(model.inputs)


def batch_shape(inputs: Path, model: Any) -> list[int]:
    """Return the shape of one full batch; the header itself has been checked.

    Raises BadInput unless it has one tensor, rows of the model's samples: float32, or int64 of words.
    """
    header = json.loads((inputs / "header.json").read_text(encoding="utf-8"))
    given = [(entry["dtype"], entry["shape"][1:]) for entry in header["tensors"]]
    wanted = input_dtype(model)
    if given != [(wanted, list(model.sample))]:
        raise BadInput(
            f"{inputs / 'header.json'}: the workload takes one {wanted} tensor, rows of "
            f"{list(model.sample)}; got {', '.join(f'{dtype} {shape}' for dtype, shape in given)}"
        )
    shape: list[int] = header["tensors"][0]["shape"]
    return [header.get("batch") or shape[0], *shape[1:]]
