"""State files of a portable training step: safetensors, as docs/portable-training-step.md has it."""

from __future__ import annotations

import glob
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from step_folder import StateTensor, Step
from tensors import DTYPES, BadInput

# https://github.com/huggingface/safetensors: the longest header that it allows, and its words.
_LONGEST_HEADER = 100_000_000
_NAMES = {
    **{f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "bfloat16": "BF16",
    "bool": "BOOL",
}


class NotFinite(ValueError):
    """A tensor of the state holds a number that is not finite."""


def require_finite(state: dict[str, np.ndarray], step: Step) -> None:
    """Raise NotFinite naming the first tensor with a NaN or an infinity."""
    for tensor in step.state:
        array = state[tensor.name]
        finite = bool((array & 32640 != 32640).all()) if tensor.dtype == "bfloat16" else bool(np.isfinite(array).all())
        if not finite:
            raise NotFinite(f"'{tensor.name}' holds a number that is not finite")


def read_state(path: Path, step: Step) -> dict[str, np.ndarray]:
    """Return the state of this step by name. Raises BadInput naming the file and what is wrong."""
    try:
        header, data = _read(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error}") from error
    metadata = header.pop("__metadata__", None)
    of = metadata.get("step_graph") if isinstance(metadata, dict) else None
    if of != step.step_graph:
        raise BadInput(f"{path}: is of the step {of!r:.100}, expected {step.step_graph}")
    places = sorted(_place(path, name, entry) for name, entry in header.items())
    ends = [0, *(end for _, end, _ in places)]
    if [begin for begin, _, _ in places] != ends[:-1] or ends[-1] != len(data):
        raise BadInput(f"{path}: expected tensors one behind the other in {len(data)} bytes")
    wanted = {tensor.name for tensor in step.state}
    if wanted != header.keys():
        name = sorted(wanted ^ header.keys())[0]
        lacks = "lacks" if name in wanted else "has a tensor that the step lacks:"
        raise BadInput(f"{path}: {lacks} '{name}'")
    state = {t.name: _tensor(path, t, header[t.name], data) for t in step.state}
    try:
        require_finite(state, step)
    except NotFinite as error:
        raise BadInput(f"{path}: {error}") from error
    return state


def _read(path: Path) -> tuple[dict[str, Any], memoryview]:
    """Return the header and what is behind it."""
    raw = memoryview(path.read_bytes())
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or length > min(len(raw) - 8, _LONGEST_HEADER):
        raise BadInput(f"{path}: expected a header of {length} bytes, the file has {len(raw)}")
    try:
        header = json.loads(bytes(raw[8 : 8 + length]), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: expected a header in JSON: {error}") from error
    if not isinstance(header, dict):
        raise BadInput(f"{path}: expected a JSON object as header, got {header!r:.100}")
    return header, raw[8 + length :]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an entry is there twice")
    return found


def _place(path: Path, name: str, entry: Any) -> tuple[int, int, str]:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    good = isinstance(offsets, list) and [type(o) for o in offsets] == [int, int]
    if not good or not 0 <= offsets[0] <= offsets[1]:
        raise BadInput(f"{path}: '{name}' has no data_offsets of two numbers: {entry!r:.200}")
    return offsets[0], offsets[1], name


def _tensor(path: Path, tensor: StateTensor, entry: dict[str, Any], data: memoryview) -> np.ndarray:
    wanted = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape)}
    given = {key: entry.get(key) for key in wanted}
    begin, end = entry["data_offsets"]
    code = np.dtype(DTYPES[tensor.dtype])
    size = math.prod(tensor.shape) * code.itemsize
    if given != wanted or end - begin != size:
        raise BadInput(f"{path}: '{tensor.name}' is {given} in {end - begin} bytes, expected {wanted} in {size}")
    return np.frombuffer(data[begin:end], code).reshape(tensor.shape).copy()


def write_state(path: Path, step: Step, state: dict[str, np.ndarray]) -> None:
    """Write a state file in its one canonical form: at once or not at all, also when power goes.

    Raises OSError, with what was there before still in place.
    """
    header: dict[str, Any] = {"__metadata__": {"step_graph": step.step_graph}}
    place = 0
    for tensor in step.state:
        end = place + state[tensor.name].nbytes
        header[tensor.name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for tensor in step.state:
                file.write(np.ascontiguousarray(state[tensor.name]).data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def remove_left(path: Path) -> None:
    """Remove temporary files of this checkpoint that killed runs left; of runs that go on they stay."""
    for file in path.parent.glob(f".{glob.escape(path.name)}.*"):
        pid = file.name.rpartition(".")[2]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            file.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename last."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
