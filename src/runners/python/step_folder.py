"""A portable training step's folder, and what is given with it: docs/portable-training-step.md."""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tensors import DTYPES, BadInput, read_header, read_json

_FORMAT = ("transect-portable-step", 1)


@dataclass(frozen=True)
class StateTensor:
    """A tensor that a step reads; `next` is the output with its next value, None: it stays."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    next: str | None


@dataclass(frozen=True)
class Graph:
    """One of the step's ONNX files, and the names that it takes and gives."""

    file: Path
    inputs: list[str]
    outputs: list[str]


@dataclass(frozen=True)
class Step:
    """What `manifest.json` says. `data` has dtypes and shapes, an axis that may vary by its name.

    `metrics` has dtypes, the loss first; `counter` names the number of updates done.
    """

    step_graph: str
    state_file: Path
    data: dict[str, tuple[str, list[Any]]]
    hyper: dict[str, float]
    seed: str | None
    state: list[StateTensor]
    counter: str
    metrics: dict[str, str]
    graphs: dict[str, Graph]


def read_step(folder: Path, accumulates: bool) -> Step:
    """Read a manifest. Raises BadInput naming the file and what it lacks."""
    file = folder / "manifest.json"
    told = read_json(file)
    given = (told.get("format"), told.get("version")) if isinstance(told, dict) else told
    if given != _FORMAT:
        raise BadInput(f"{file}: expected format and version {_FORMAT}, got {given!r:.200}")
    try:
        return _step(folder, told, ("step", "accumulate") if accumulates else ("step",))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = error if isinstance(error, BadInput) else f"{type(error).__name__}: {error}"
        raise BadInput(f"{file}: expected the manifest of a training step: {reason}") from error


def _step(folder: Path, told: dict[str, Any], names: tuple[str, ...]) -> Step:
    if missing := [name for name in names if name not in told["graphs"]]:
        raise BadInput(f"--accumulate: the step was made without the graph '{missing[0]}'")
    counters = [entry["name"] for entry in told["state"] if entry["role"] == "counter"]
    step = Step(
        step_graph=_text(told["step_graph"]),
        state_file=folder / told["state_file"],
        data={_text(e["name"]): (e["dtype"], e["shape"]) for e in told["data"]},
        hyper={_text(e["name"]): float(e["default"]) for e in told["hyper"]},
        seed=told["seed"] and _text(told["seed"]["name"]),
        state=[_state_tensor(entry) for entry in told["state"]],
        counter=counters[0] if len(counters) == 1 else "",
        metrics={_text(e["name"]): _number(e["dtype"]) for e in told["metrics"]},
        graphs={name: _graph(folder, told["graphs"][name]) for name in names},
    )
    shapes = {t.name: (t.dtype, t.shape) for t in step.state}
    if shapes.get(step.counter) != ("int64", ()):
        raise BadInput(f"expected one counter, an int64 scalar, got {counters}")
    known = {*step.data, *step.hyper, *shapes, *([step.seed] if step.seed else [])}
    made = {*step.metrics, *(t.next for t in step.state)}
    for name, graph in step.graphs.items():
        if strange := sorted({*graph.inputs} - known | {*graph.outputs} - made):
            raise BadInput(f"graph '{name}' has '{strange[0]}', which nothing else names")
        if not {*step.metrics} <= {*graph.outputs}:
            raise BadInput(f"graph '{name}' gives {graph.outputs}, expected {[*step.metrics]} too")
    _check_hash(step)
    return step


def _check_hash(step: Step) -> None:
    """Raise BadInput for a step.onnx of another export, or altered since: state files name it."""
    file = step.graphs["step"].file
    if file.is_file():
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != step.step_graph:
            raise BadInput(f"{file} has the sha256 {found}, expected {step.step_graph}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadInput(f"expected a text, got {value!r:.100}")
    return value


def _number(dtype: Any) -> str:
    if dtype not in ("float32", "float64"):
        raise BadInput(f"expected metrics in float32 or float64, got {dtype!r:.100}")
    return str(dtype)


def _state_tensor(entry: dict[str, Any]) -> StateTensor:
    name, dtype, shape, following = (entry[key] for key in ("name", "dtype", "shape", "next"))
    if dtype not in DTYPES or not all(type(size) is int and size >= 0 for size in shape):
        raise BadInput(f"state '{name}' has dtype {dtype!r} and shape {shape!r:.200}")
    return StateTensor(_text(name), dtype, tuple(shape), following and _text(following))


def _graph(folder: Path, entry: dict[str, Any]) -> Graph:
    names = [[_text(name) for name in entry[key]] for key in ("inputs", "outputs")]
    return Graph(folder / entry["file"], *names)


class Schedule:
    """The hyper-parameters of each step: the manifest's defaults, and what a file sets.

    Raises BadInput for an unknown name, a list shorter than `until`, a value that is no number.
    """

    def __init__(self, path: Path | None, step: Step, until: int) -> None:
        given = {} if path is None else read_json(path)
        if not isinstance(given, dict):
            raise BadInput(f"{path}: expected a JSON object, got {given!r:.100}")
        for name, value in given.items():
            if name not in step.hyper:
                known = ", ".join(step.hyper)
                raise BadInput(f"{path}: unknown hyper-parameter '{name}', the step has {known}")
            if isinstance(value, list) and len(value) < until:
                raise BadInput(f"{path}: '{name}' has {len(value)} values, expected {until}")
            if not all(map(_is_finite, value if isinstance(value, list) else [value])):
                raise BadInput(f"{path}: '{name}' is {value!r:.100}, expected finite numbers")
        self._values = step.hyper | given

    def at(self, step: int) -> dict[str, np.ndarray]:
        """Return those of one step, float64 scalars by name."""
        return {
            name: np.array(value[step] if isinstance(value, list) else value, np.float64)
            for name, value in self._values.items()
        }


def _is_finite(value: Any) -> bool:
    # Also whole numbers that no float64 holds, and what is no number, are beyond the bound.
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def read_data(folder: Path, step: Step) -> dict[str, np.ndarray]:
    """Return all rows of the data by name. Raises BadInput unless they are what the step takes."""
    tensors, dtypes, _ = read_header(folder)
    header = folder / "header.json"
    if tensors.keys() != step.data.keys():
        raise BadInput(f"{header}: has {sorted(tensors)}, the step takes {sorted(step.data)}")
    for name, (dtype, shape) in step.data.items():
        given = tensors[name].shape
        fixed = zip(shape[1:], given[1:], strict=False)
        fits = len(shape) == len(given) > 0 and all(isinstance(a, str) or a == b for a, b in fixed)
        if dtypes[name] != dtype or not fits:
            raise BadInput(
                f"{header}: '{name}' is {dtypes[name]} of shape {list(given)}, the step takes {dtype} of shape {shape}"
            )
    if len(rows := {len(tensor) for tensor in tensors.values()}) != 1:
        raise BadInput(f"{header}: expected one number of rows, got {sorted(rows)}")
    return tensors


def read_order(given: argparse.Namespace, rows: int) -> np.ndarray:
    """Return the rows of each micro-batch: int64, (until, accumulate, batch)."""
    shape = (given.until, given.accumulate, given.batch)
    try:
        size = given.order.stat().st_size
        if size % 8 or size < 8 * math.prod(shape):
            raise BadInput(
                f"{given.order}: holds {size} bytes, expected int64 and at least "
                f"{given.until} steps x {given.accumulate} x {given.batch} of them"
            )
        order = np.fromfile(given.order, "<i8", math.prod(shape)).reshape(shape)
    except OSError as error:
        raise BadInput(f"{given.order}: cannot be read: {error}") from error
    if order.size and not 0 <= order.min() <= order.max() < rows:
        wrong = order[(order < 0) | (order >= rows)][0]
        raise BadInput(f"{given.order}: row {wrong}, the data have {rows} rows")
    return order
