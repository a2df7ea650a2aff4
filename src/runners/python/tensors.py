"""Tensors of the runner contract: raw little-endian files beside a `header.json`."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

# bfloat16 travels as its bits: numpy has no such type.
DTYPES = {
    **{f"{kind}{bits}": f"<{kind[0]}{bits // 8}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "bfloat16": "<u2",
    "bool": "?",
}
NAMES = {np.dtype(code): name for name, code in DTYPES.items() if name != "bfloat16"}


class BadInput(ValueError):
    """What was given cannot be used; exit code 2."""


def read_json(path: Path) -> Any:
    """Read a JSON file. Raises BadInput naming it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: expected a JSON file: {type(error).__name__}: {error}") from error


def read_header(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, str], int | None]:
    """Return the tensors of `folder/header.json` by name, their dtypes, and the batch, if any.

    Strings come as arrays of objects, bfloat16 as uint16. Raises BadInput naming file and entry.
    """
    header = folder / "header.json"
    described = read_json(header)
    entries = described.get("tensors") if isinstance(described, dict) else None
    if not isinstance(entries, list):
        raise BadInput(f'{header}: expected {{"tensors": [...]}}')
    tensors: dict[str, np.ndarray] = {}
    dtypes: dict[str, str] = {}
    for entry in entries:
        name, dtype, shape, file = _entry(header, entry)
        if name in tensors:
            raise BadInput(f"{header}: tensor '{name}' is there twice")
        tensors[name], dtypes[name] = _read(folder / file, name, dtype, shape), dtype
    batch = described.get("batch")
    if batch is not None:
        rows = {len(tensor) if tensor.ndim else 0 for tensor in tensors.values()}
        whole = isinstance(batch, int) and not isinstance(batch, bool)
        if not whole or len(rows) != 1 or not 1 <= batch <= min(rows):
            raise BadInput(
                f"{header}: needs N >= batch >= 1 rows, the same N in every tensor; got batch "
                f"{batch!r} and {sorted(rows)} rows"
            )
    return tensors, dtypes, batch


def _entry(header: Path, entry: Any) -> tuple[str, str, list[int], str]:
    keys = ("name", "dtype", "shape", "file")
    if not isinstance(entry, dict) or any(key not in entry for key in keys):
        raise BadInput(f"{header}: expected tensors with {', '.join(keys)}, got {entry!r:.200}")
    name, dtype, shape, file = (entry[key] for key in keys)
    if not isinstance(name, str) or not isinstance(file, str) or "\0" in file:
        raise BadInput(f"{header}: name and file of a tensor are texts, got {entry!r:.200}")
    if not isinstance(dtype, str) or dtype not in {*DTYPES, "string"}:
        raise BadInput(f"{header}: tensor '{name}' is {dtype!r}, expected one of {', '.join(DTYPES)}, string")
    good = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not good:
        raise BadInput(f"{header}: tensor '{name}' has shape {shape!r:.200}, expected sizes >= 0")
    return name, dtype, shape, file


def _read(path: Path, name: str, dtype: str, shape: list[int]) -> np.ndarray:
    count = math.prod(shape)
    try:
        size = path.stat().st_size
        if dtype == "string":
            return _read_strings(path, name, count).reshape(shape)
        wanted = count * np.dtype(DTYPES[dtype]).itemsize
        if size != wanted:
            raise BadInput(f"{path}: holds {size} bytes, tensor '{name}' of shape {shape} in {dtype} takes {wanted}")
        tensor = np.fromfile(path, dtype=DTYPES[dtype]).reshape(shape)
    except OSError as error:
        raise BadInput(f"{path}: tensor '{name}' cannot be read: {error}") from error
    if dtype == "bool" and tensor.size and tensor.view(np.uint8).max() > 1:
        raise BadInput(f"{path}: tensor '{name}' is bool and holds a byte other than 0 and 1")
    return tensor


def _read_strings(path: Path, name: str, count: int) -> np.ndarray:
    raw, place, texts = path.read_bytes(), 0, []
    while place < len(raw) and len(texts) <= count:
        head = raw[place : place + 4]
        end = place + 4 + (struct.unpack("<I", head)[0] if len(head) == 4 else len(raw))
        if end > len(raw):
            break
        texts.append(raw[place + 4 : end])
        place = end
    if place != len(raw) or len(texts) != count:
        raise BadInput(f"{path}: expected {count} strings of tensor '{name}', each after its length")
    try:
        return np.array([text.decode("utf-8") for text in texts] or [], dtype=object)
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: a string of tensor '{name}' is no UTF-8: {error}") from error


def rows_of(tensors: dict[str, np.ndarray]) -> int:
    """Return N, the length of the first axis that all share."""
    return len(next(iter(tensors.values())))


def full_batches(tensors: dict[str, np.ndarray], batch: int | None) -> list[dict[str, np.ndarray]]:
    """Cut the rows into full batches, the rest is left out; without a batch: one, of all."""
    if batch is None:
        return [tensors]
    return [
        {name: tensor[start : start + batch] for name, tensor in tensors.items()}
        for start in range(0, rows_of(tensors) - batch + 1, batch)
    ]
