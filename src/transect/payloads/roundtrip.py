"""One round trip: another framework loads an exported file, and computes what the first one did.

It takes `model` from a model cell. A framework that cannot load the file is a verdict, one that gives other outputs
another.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.errors import FAULTS, BadInput
from transect.domain.record import Cause
from transect.domain.terminal import say
from transect.onnx_models.comparison import differences
from transect.onnx_models.facts import facts_of_model
from transect.onnx_models.loaders import LOADERS, Loader
from transect.onnx_models.models import Outputs
from transect.onnx_models.results import refused, result, versions
from transect.onnx_models.tensors import NoTensor, read_tensors

_LIBRARIES = "onnx onnx2torch torch jax jaxonnxruntime opencv-python-headless openvino tinygrad numpy"


def _cut(tensors: Outputs, rows: int | None) -> dict[str, Any]:
    return {n: x if rows is None or isinstance(x, NoTensor) else x[:rows] for n, x in tensors.items()}


def _computed(loader: Loader, path: Path, inputs: dict[str, Any]) -> list[Any]:
    """Return what the framework computes, in the file's order; tensors as arrays of numpy."""
    # A copy: onnx2tf writes its simplified graph over the file that it was given.
    with tempfile.TemporaryDirectory() as folder:
        found = loader.load(Path(shutil.copy(path, folder)))(inputs)
    return [output if isinstance(output, (list, tuple, dict)) else np.asarray(output) for output in found]


def _named(found: list[Any], expected: Outputs) -> Outputs:
    """Return outputs by the names that they should have. Raises BadInput for another number of them.

    What is no tensor is called what Python calls it: it has no form that libraries share.
    """
    if len(found) != len(expected):
        raise BadInput(f"it gives {len(found)} outputs, expected {list(expected)}")
    return {
        name: output if isinstance(output, np.ndarray) else NoTensor(type(output).__name__)
        for name, output in zip(expected, found, strict=True)
    }


def roundtrip(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Load one cell's file; return its result."""
    cell, model = Cell.of(**spec["cell"]), folders["model"]
    loader = LOADERS.get(cell.get("loader"))
    facts = facts_of_model(model)
    rows = loader.rows if facts["batched"] else None
    inputs = _cut(read_tensors(model / "inputs"), rows)
    expected = _cut(read_tensors(model / "expected"), rows)
    # Where native code crashes, the tail of the log says what was under way.
    say(f"{cell.get('loader')} loads the file")
    begin = time.perf_counter()
    try:
        computed = _computed(loader, model / "model.onnx", inputs)
    except FAULTS as error:
        return _refused(error)
    seconds = round(time.perf_counter() - begin, 3)
    try:
        apart = differences(_named(computed, expected), expected, stand_ins=loader.stand_ins)
    except BadInput as error:
        return result(wrong=str(error), libraries=versions(*_LIBRARIES.split()))
    tolerance = facts["tolerance"]
    good = all(apart[name] <= tolerance[name] for name in apart)
    worst = max(apart.values(), default=0.0)
    return result(
        wrong="" if good else f"it differs by {apart}, the tolerance is {tolerance}",
        metrics={"max_abs_difference": worst},
        details={
            "differences": {n: d if np.isfinite(d) else str(d) for n, d in apart.items()},
            "tolerance": tolerance,
            "rows_compared": rows,
            "seconds": seconds,
        },
        libraries=versions(*_LIBRARIES.split()),
    )


def _refused(error: BaseException) -> dict[str, Any]:
    failed = refused(error)
    # A translator that has a module for each operator lacks one of its own, not a package.
    lacks_operator = isinstance(error, ModuleNotFoundError) and "." in (error.name or "")
    if lacks_operator or failed["cause"] == Cause.BAD_INPUT.value:
        failed["cause"] = Cause.UNSUPPORTED.value
    return failed | {"libraries": versions(*_LIBRARIES.split())}
