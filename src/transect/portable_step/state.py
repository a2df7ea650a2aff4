"""State files: safetensors whose bytes are the same in every language."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.portable_step.manifest import Manifest, StateTensor

DTYPES = {
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "BOOL": "bool",
}
CODES = {name: code for code, name in DTYPES.items()}
# What safetensors itself allows for a header.
MAX_HEADER_LENGTH = 100_000_000


def state_bytes(state: Mapping[str, np.ndarray], manifest: Manifest) -> bytes:
    """Return the state file's bytes; raises BadInput when a tensor is not the manifest's."""
    header: dict[str, Any] = {"__metadata__": {"step_graph": manifest.step_graph}}
    parts, end = [], 0
    for tensor in manifest.state:
        if tensor.name not in state:
            raise BadInput(f"state: {tensor.name} is not there")
        array = _checked(state[tensor.name], tensor, "state")
        raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        header[tensor.name] = {
            "dtype": CODES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [end, end + len(raw)],
        }
        parts.append(raw)
        end += len(raw)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def write_state(path: Path, state: Mapping[str, np.ndarray], manifest: Manifest) -> None:
    """Write a state file atomically; raises BadInput as `state_bytes`, OSError as `write_atomic`."""
    write_atomic(path, state_bytes(state, manifest))


def read_state(path: Path, manifest: Manifest) -> dict[str, np.ndarray]:
    """Read the state of this step, in the manifest's order.

    Raises BadInput for a file of another step, and for a tensor of another name, dtype or shape.
    """
    tensors, metadata = read_tensors(path)
    if (given := metadata.get("step_graph")) != manifest.step_graph:
        raise BadInput(f"{path}: state of the step {given}, expected {manifest.step_graph}")
    names = [tensor.name for tensor in manifest.state]
    if strange := [name for name in tensors if name not in names]:
        raise BadInput(f"{path}: {strange[0]} is no tensor of this step")
    if missing := [name for name in names if name not in tensors]:
        raise BadInput(f"{path}: {missing[0]} is not there")
    return {tensor.name: _checked(tensors[tensor.name], tensor, str(path)) for tensor in manifest.state}


def transfer(
    source: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Take the model's tensors over from another state, by name, where dtype and shape agree.

    Returns the new state, in which all but `model.*` is as in `state`, and the names taken.
    Raises BadInput when there are none.
    """
    taken = [
        name
        for name, array in state.items()
        if name.startswith("model.")
        and name in source
        and (source[name].shape, source[name].dtype) == (array.shape, array.dtype)
    ]
    if not taken:
        raise BadInput("transfer: the two states share no model tensor of the same name and shape")
    return {name: source[name] if name in taken else array for name, array in state.items()}, taken


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read any safetensors file: its tensors and its metadata; raises BadInput when it is none."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; expected a safetensors file") from None
    try:
        return _parse(raw)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{path}: no valid safetensors file: {error}") from None


def _parse(raw: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or length > min(len(raw) - 8, MAX_HEADER_LENGTH):
        raise ValueError(f"{len(raw)} bytes do not hold a header of {length}")
    header = json.loads(raw[8 : 8 + length].decode("utf-8"))
    metadata = dict(header.pop("__metadata__", {}))
    body, arrays, spans = raw[8 + length :], {}, []
    for name, facts in header.items():
        if facts["dtype"] not in DTYPES:
            raise ValueError(f"{name}: dtype {facts['dtype']!r}")
        dtype = np.dtype(DTYPES[facts["dtype"]]).newbyteorder("<")
        begin, end = facts["data_offsets"]
        count = math.prod(facts["shape"])
        if any(type(size) is not int or size < 0 for size in facts["shape"]):
            raise ValueError(f"{name}: the shape {facts['shape']}")
        if not 0 <= begin <= end <= len(body) or end - begin != count * dtype.itemsize:
            raise ValueError(f"{name}: bytes {begin} to {end} do not hold {facts['shape']} {dtype}")
        spans.append((begin, end))
        array = np.frombuffer(body, dtype, count, begin).reshape(facts["shape"])
        arrays[name] = array.astype(dtype.newbyteorder("="))
    _check_spans(spans, len(body))
    return arrays, metadata


def _check_spans(spans: list[tuple[int, int]], length: int) -> None:
    """Tensors lie one behind the other and fill the file, as the format says."""
    last = 0
    for begin, end in sorted(spans):
        if begin != last:
            raise ValueError(f"tensors overlap or leave a gap at byte {min(begin, last)}")
        last = end
    if last != length:
        raise ValueError(f"tensors end at byte {last} of {length}")


def _checked(array: np.ndarray, expected: StateTensor, where: str) -> np.ndarray:
    given = (array.dtype.name, array.shape)
    if given != (expected.dtype, expected.shape):
        raise BadInput(
            f"{where}: {expected.name} is {given[0]} {list(given[1])}, expected {expected.dtype} {list(expected.shape)}"
        )
    return array
