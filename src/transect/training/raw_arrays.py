"""Arrays that a program in any language reads and writes: a file, an offset, a type, a shape.

Numbers are little-endian, row-major, without padding. What numpy has stored uncompressed (npy, and
the members of npz) already is such a file, so nothing is copied.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

Entry = dict[str, Any]
_TYPES = ("float64", "float32", "int64", "int32", "uint8")


def _entry(stream: IO[bytes], start: int, file: Path) -> Entry:
    """Read the header of an npy file that begins at `start`."""
    stream.seek(start)
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, fortran, dtype = read(stream)
    if (fortran and len(shape) > 1) or dtype.newbyteorder("<") != dtype or dtype.name not in _TYPES:
        raise ValueError(f"{file}: {dtype} in this order cannot be read by other languages")
    return {"dtype": dtype.name, "shape": list(shape), "file": str(file), "offset": stream.tell()}


def describe_npy(path: Path) -> Entry:
    """Return where the array of an npy file is."""
    with path.open("rb") as stream:
        return _entry(stream, 0, path)


def describe_npz(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> dict[str, Entry]:
    """Return where each array of an uncompressed npz file is whose name is `wanted`.

    Raises ValueError for a compressed one, and for an array of a type that not every language has.
    """
    entries = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
        for member in archive.infolist():
            if not wanted(member.filename.removesuffix(".npy")):
                continue
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{path}: {member.filename} is compressed")
            # PKWARE APPNOTE 4.3.7: 30 bytes, then name and extra field of these lengths.
            stream.seek(member.header_offset + 26)
            lengths = np.frombuffer(stream.read(4), "<u2")
            start = member.header_offset + 30 + int(lengths.sum())
            entries[member.filename.removesuffix(".npy")] = _entry(stream, start, path)
    return entries


def write_array(path: Path, array: np.ndarray) -> Entry:
    """Write an array as it lies in memory; return where it is."""
    path.write_bytes(np.ascontiguousarray(array).tobytes())
    return {"dtype": array.dtype.name, "shape": list(array.shape), "file": str(path), "offset": 0}


def read_array(entry: Mapping[str, Any], folder: Path) -> np.ndarray:
    """Return the array of an entry; a relative file is in `folder`.

    Raises ValueError naming the file when type, shape and content do not fit each other.
    """
    try:
        file, name = folder / str(entry["file"]), str(entry["dtype"])
        shape = tuple(int(length) for length in entry["shape"])
        offset = int(entry.get("offset", 0))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"an array is given by file, dtype, shape and perhaps offset, not by {entry!r}") from error
    if name not in _TYPES or min((0, offset, *shape)) < 0:
        raise ValueError(f"{file}: {name} {shape} at {offset}: expected one of {', '.join(_TYPES)}")
    dtype = np.dtype(name).newbyteorder("<")
    count = prod(shape)
    size = file.stat().st_size
    if size < offset + count * dtype.itemsize:
        raise ValueError(f"{file}: {size} bytes hold no {name} {shape} at {offset}")
    return np.fromfile(file, dtype, count, offset=offset).reshape(shape)
