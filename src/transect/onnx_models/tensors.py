"""Raw little-endian tensors beside a small JSON header: how runtimes of all languages get data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic

__all__ = ["HEADER", "describe", "read_tensor", "write_header", "write_tensor"]

HEADER = "header.json"


def describe(name: str, shape: tuple[int, ...], file: str | Path) -> dict[str, Any]:
    """Return a header's entry of a float32 tensor; `file` is absolute or relative to the header."""
    return {"name": name, "dtype": "float32", "shape": list(shape), "file": str(file)}


def write_tensor(folder: Path, name: str, array: np.ndarray, file: str) -> dict[str, Any]:
    """Write `array` as float32, little-endian, row-major; return its header entry."""
    raw = np.ascontiguousarray(array, dtype="<f4")
    write_atomic(folder / file, raw.tobytes())
    return describe(name, raw.shape, file)


def write_header(folder: Path, tensors: list[dict[str, Any]], **more: Any) -> Path:
    """Write `header.json` with the tensors and further keys, such as `batch`."""
    path = folder / HEADER
    write_atomic(path, json.dumps({"tensors": tensors, **more}, indent=1) + "\n")
    return path


def read_tensor(folder: Path, name: str) -> np.ndarray:
    """Read one tensor, float32 (n, ...), that the folder's header describes.

    Raises BadInput naming the file when the header or the tensor is missing, is not float32, or
    has another size than its shape says.
    """
    header = folder / HEADER
    try:
        entries = {entry["name"]: entry for entry in json.loads(header.read_text())["tensors"]}
        entry = entries[name]
        dtype, shape, file = entry["dtype"], tuple(entry["shape"]), folder / entry["file"]
    except FileNotFoundError:
        raise BadInput(f"{header}: no such file") from None
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{header}: does not describe a tensor '{name}' ({type(error).__name__}: {error})"
        ) from None
    if dtype != "float32":
        raise BadInput(f"{header}: tensor '{name}' is {dtype}, expected float32")
    try:
        raw = np.fromfile(file, dtype="<f4")
    except FileNotFoundError:
        raise BadInput(f"{file}: no such file, but {header} names it") from None
    if raw.size != int(np.prod(shape)):
        raise BadInput(f"{file}: holds {raw.size} numbers, {header} says {list(shape)}")
    return raw.reshape(shape)
