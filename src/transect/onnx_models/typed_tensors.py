"""Tensors of every type that the runner contract has, as its folders hold them.

A bfloat16 is an array of uint16, its bits: numpy has no such type. Strings are arrays of objects.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.onnx_models.tensors import HEADER

__all__ = ["DTYPES", "Tensor", "read_tensors", "write_tensors"]

# What numpy calls each type of the contract, in the byte order of its files.
DTYPES: dict[str, np.dtype[Any]] = {
    "float16": np.dtype("<f2"), "bfloat16": np.dtype("<u2"), "float32": np.dtype("<f4"),
    "float64": np.dtype("<f8"), "bool": np.dtype("?"), "string": np.dtype(object),
    **{f"int{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"uint{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
}  # fmt: skip
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Tensor:
    """A tensor with its name and its type in the contract's words.

    `array` is None for an output that is no tensor; `dtype` then says what it is.
    """

    name: str
    dtype: str
    array: np.ndarray | None


def write_tensors(folder: Path, tensors: Iterable[Tensor]) -> None:
    """Write each tensor as `INDEX.bin`, and the header. They are not synchronised to the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for index, tensor in enumerate(tensors):
        assert tensor.array is not None
        file, shape = f"{index}.bin", list(tensor.array.shape)
        (folder / file).write_bytes(_encoded(tensor.array, tensor.dtype))
        entries.append({"name": tensor.name, "dtype": tensor.dtype, "shape": shape, "file": file})
    (folder / HEADER).write_text(json.dumps({"tensors": entries}) + "\n", encoding="utf-8")


def _encoded(array: np.ndarray, dtype: str) -> bytes:
    if dtype != "string":
        return array.astype(DTYPES[dtype], casting="equiv", copy=False).tobytes()
    texts = [str(text).encode("utf-8") for text in array.reshape(-1)]
    return b"".join(_LENGTH.pack(len(text)) + text for text in texts)


def read_tensors(folder: Path) -> list[Tensor]:
    """Return the tensors of a folder in the order of its header.

    Raises BadInput naming the file when the header or a tensor is missing, is of no type of the
    contract, or has another size than its shape says.
    """
    header = folder / HEADER
    try:
        entries = json.loads(header.read_text(encoding="utf-8"))["tensors"]
        return [_read(header, entry) for entry in entries]
    except FileNotFoundError as error:
        raise BadInput(f"{error.filename}: no such file") from None
    except (OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"{header}: no header of tensors ({type(error).__name__}: {error})"
        ) from None


def _read(header: Path, entry: dict[str, Any]) -> Tensor:
    name = str(entry["name"])
    if "kind" in entry:
        return Tensor(name=name, dtype=str(entry["kind"]), array=None)
    dtype, shape, file = entry["dtype"], entry["shape"], header.parent / entry["file"]
    if dtype not in DTYPES:
        raise BadInput(
            f"{header}: tensor '{name}' is {dtype!r}, expected one of {', '.join(DTYPES)}"
        )
    if not all(type(size) is int and size >= 0 for size in shape):
        raise BadInput(f"{header}: tensor '{name}' has shape {shape!r}, expected sizes >= 0")
    raw, count = file.read_bytes(), math.prod(shape)
    if dtype == "string":
        return Tensor(name=name, dtype=dtype, array=_strings(file, raw, count).reshape(shape))
    size = count * DTYPES[dtype].itemsize
    if len(raw) != size:
        raise BadInput(f"{file}: holds {len(raw)} bytes, {dtype} of shape {shape} takes {size}")
    return Tensor(name=name, dtype=dtype, array=np.frombuffer(raw, DTYPES[dtype]).reshape(shape))


def _strings(file: Path, raw: bytes, count: int) -> np.ndarray:
    texts, place = [], 0
    while place < len(raw):
        start = place + _LENGTH.size
        place = start + _LENGTH.unpack_from(raw.ljust(start, b"\0"), place)[0]
        texts.append(raw[start:place])
    if place != len(raw) or len(texts) != count:
        raise BadInput(f"{file}: holds {len(texts)} strings in {len(raw)} bytes, expected {count}")
    array = np.empty(count, dtype=object)
    array[:] = [text.decode("utf-8") for text in texts]
    return array
