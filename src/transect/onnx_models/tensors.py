"""Raw little-endian tensors beside a small JSON header: how runtimes of all languages get data.

The format is that of docs/runner-contract.md. A text is its length in bytes as uint32, then UTF-8.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput, MissingDependency
from transect.domain.files import write_atomic

HEADER = "header.json"

# Bytes of one number. A text has no fixed size.
DTYPES = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "bool": 1,
    "string": None,
}

# What an output can be that is no tensor, in the words that runtimes have for it.
_KINDS = {"sequence": ("seq", "list"), "map": ("map", "dict"), "optional": ("optional", "absent")}

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class NoTensor:
    """An output that is a sequence, a map or an absent optional; `kind` is for people."""

    kind: str

    def is_like(self, other: NoTensor) -> bool:
        """Whether both are sequences, maps or optionals, whatever is inside.

        What names none of them, as where a language gives tensors only, is like all of them.
        """
        kind, other_kind = _outermost(self.kind), _outermost(other.kind)
        return kind is None or other_kind is None or kind == other_kind


def _outermost(kind: str) -> str | None:
    """Return which of `_KINDS` the words of a kind name first, or None."""
    places = {
        name: min((kind.lower().find(word) for word in words if word in kind.lower()), default=-1)
        for name, words in _KINDS.items()
    }
    named = {name: place for name, place in places.items() if place >= 0}
    return min(named, key=named.__getitem__) if named else None


def describe(name: str, shape: tuple[int, ...], file: str | Path, dtype: str) -> dict[str, Any]:
    """Return a header's entry of a tensor; `file` is absolute or relative to the header."""
    return {"name": name, "dtype": dtype, "shape": list(shape), "file": str(file)}


def write_header(folder: Path, tensors: list[dict[str, Any]], **more: Any) -> Path:
    """Write `header.json` with the tensors and further keys, such as `batch`."""
    path = folder / HEADER
    write_atomic(path, json.dumps({"tensors": tensors, **more}, indent=1) + "\n")
    return path


def write_tensors(folder: Path, tensors: Mapping[str, np.ndarray | NoTensor], **more: Any) -> Path:
    """Write each array in its own dtype to `tensor-INDEX.bin`, and the header, in this order.

    The folder is made if it is not there. Raises BadInput for a dtype that the contract lacks.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for index, (name, value) in enumerate(tensors.items()):
        if isinstance(value, NoTensor):
            entries.append({"name": name, "kind": value.kind})
            continue
        dtype, file = dtype_of(name, value), f"tensor-{index}.bin"
        write_atomic(folder / file, to_bytes(value, dtype))
        entries.append(describe(name, value.shape, file, dtype))
    return write_header(folder, entries, **more)


def read_tensors(folder: Path, *, bits: bool = False) -> dict[str, np.ndarray | NoTensor]:
    """Read all that the folder's header describes, by name, in its order.

    Texts are an array of objects. With `bits` a bfloat16 comes as uint16, which needs no ml_dtypes.
    Raises BadInput naming the file when the header or a tensor is missing or is not what the header
    says.
    """
    return {
        name: NoTensor(str(entry["kind"])) if "kind" in entry else _read(folder, name, entry, bits)
        for name, entry in _entries(folder).items()
    }


def tensor_types(folder: Path) -> dict[str, str]:
    """Return the types that a folder's header names, in its order; of what is no tensor, its kind.

    Raises BadInput naming a header that is missing or none.
    """
    return {
        name: str(entry["kind"] if "kind" in entry else entry.get("dtype")) for name, entry in _entries(folder).items()
    }


def _entries(folder: Path) -> dict[str, dict[str, Any]]:
    header = folder / HEADER
    try:
        return {entry["name"]: entry for entry in json.loads(header.read_text())["tensors"]}
    except FileNotFoundError:
        raise BadInput(f"{header}: no such file") from None
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{header}: does not describe tensors ({type(error).__name__}: {error})") from None


def type_name(array: np.ndarray) -> str:
    """Return the name of an array's type; texts are of one type, however they are kept."""
    return "string" if array.dtype.kind in "OUS" else array.dtype.name


def dtype_of(name: str, array: np.ndarray) -> str:
    """Return an array's type in the contract's words. Raises BadInput for one that it lacks."""
    if (dtype := type_name(array)) not in DTYPES:
        raise BadInput(f"tensor '{name}' is {dtype}, expected one of {', '.join(DTYPES)}")
    return dtype


def to_bytes(array: np.ndarray, dtype: str) -> bytes:
    """Return what a tensor's file holds; `dtype` as `dtype_of` says."""
    if dtype == "string":
        texts = [str(text).encode() for text in array.ravel()]
        return b"".join(_LENGTH.pack(len(text)) + text for text in texts)
    # A dtype from outside of numpy, such as bfloat16, knows no byte order.
    little = array if dtype == "bfloat16" else array.astype(array.dtype.newbyteorder("<"))
    return little.tobytes()


def _read(folder: Path, name: str, entry: dict[str, Any], bits: bool = False) -> np.ndarray:
    """Read one tensor; the size of its file is looked at before room is made for it."""
    header = folder / HEADER
    try:
        dtype, shape = str(entry["dtype"]), tuple(int(axis) for axis in entry["shape"])
        file = folder / entry["file"]
        size = DTYPES[dtype]
        if min(shape, default=0) < 0:
            raise ValueError(f"shape {list(shape)}")
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{header}: does not describe a tensor '{name}' ({type(error).__name__}: {error})") from None
    try:
        held = file.stat().st_size
    except FileNotFoundError:
        raise BadInput(f"{file}: no such file, but {header} names it") from None
    if size is None:
        return read_texts(file, shape)
    if held != size * prod(shape):
        raise BadInput(f"{file}: holds {held} bytes, {header} says {dtype} {list(shape)}")
    return np.fromfile(file, dtype=_numpy(dtype, bits)).reshape(shape)


def _numpy(dtype: str, bits: bool) -> np.dtype[Any]:
    if dtype == "bfloat16" and bits:
        return np.dtype("<u2")
    if dtype != "bfloat16":
        return np.dtype(dtype).newbyteorder("<")
    try:
        import ml_dtypes
    except ImportError:
        raise MissingDependency("bfloat16 tensors are read with ml_dtypes") from None
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found


def read_texts(file: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Read a tensor of texts. Raises BadInput naming the file when it holds others, or not as many."""
    raw, texts, at = file.read_bytes(), [], 0
    try:
        while at < len(raw):
            (length,) = _LENGTH.unpack_from(raw, at)
            start, at = at + _LENGTH.size, at + _LENGTH.size + length
            if at > len(raw):
                raise ValueError(f"a text of {length} bytes ends behind the file")
            texts.append(raw[start:at].decode())
    except (struct.error, ValueError) as error:
        raise BadInput(f"{file}: no texts with their lengths: {error}") from None
    if len(texts) != prod(shape):
        raise BadInput(f"{file}: holds {len(texts)} texts, expected the shape {list(shape)}")
    array = np.empty(len(texts), object)
    array[:] = texts
    return array.reshape(shape)
