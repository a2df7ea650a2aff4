"""What a runner is given in files, checked before its plan is written: headers, tensors, options, arrivals."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.onnx_models.tensors import DTYPES, HEADER, read_texts
from transect.runtimes.options import expected_value
from transect.runtimes.plan_file import MAX_AXES, Entry, Plan, Role

# Twice this is still a number of nanoseconds in 64 bits.
_LATEST_NS = 2**60


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A tensor in a file of its own, whose size is right."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path
    size: int

    def entry(self, role: Role, group: int = 0) -> Entry:
        """Return the plan's entry."""
        return Entry(
            role=role,
            group=group,
            name=self.name,
            text=str(self.file.absolute()),
            dtype=self.dtype,
            shape=self.shape,
            size=self.size,
        )


def read_given(folder: Path, batch: int | None = None) -> tuple[list[Given], int]:
    """Return the tensors that a folder's header describes, and the batch that is asked for, else its own, 0 without one.

    Raises BadInput naming file and entry for what is not there or is not as the header says.
    """
    header = folder / HEADER
    described = read_json(header)
    entries = described.get("tensors") if isinstance(described, dict) else None
    if not isinstance(entries, list):
        raise BadInput(f'{header}: expected {{"tensors": [...]}}')
    tensors = [_given(header, entry) for entry in entries]
    names = [tensor.name for tensor in tensors]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInput(f"{header}: tensor '{twice[0]}' is there twice")
    asked = described.get("batch") if batch is None else batch or None
    if asked is not None:
        rows = {tensor.shape[0] if tensor.shape else 0 for tensor in tensors}
        if type(asked) is not int or len(rows) != 1 or not 1 <= asked <= min(rows):
            raise BadInput(
                f"{header}: needs N >= batch >= 1 rows, the same N in every tensor; got batch "
                f"{asked!r:.100} and {sorted(rows)} rows"
            )
    return tensors, asked or 0


def read_json(path: Path) -> Any:
    """Read a JSON file. Raises BadInput naming it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: expected a JSON file: {type(error).__name__}: {error}") from None


def _given(header: Path, entry: Any) -> Given:
    keys = ("name", "dtype", "shape", "file")
    if not isinstance(entry, dict) or any(key not in entry for key in keys):
        raise BadInput(f"{header}: expected tensors with {', '.join(keys)}, got {entry!r:.200}")
    name, dtype, shape, file = (entry[key] for key in keys)
    if not isinstance(name, str) or not isinstance(file, str) or "\0" in name + file:
        raise BadInput(f"{header}: name and file of a tensor are texts, got {entry!r:.200}")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise BadInput(f"{header}: tensor '{name}' is {dtype!r}, expected one of {', '.join(DTYPES)}")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape) or len(shape) > MAX_AXES:
        raise BadInput(f"{header}: tensor '{name}' has shape {shape!r:.200}, expected at most {MAX_AXES} sizes >= 0")
    path = header.parent / file
    return Given(name=name, dtype=dtype, shape=tuple(shape), file=path, size=_size(path, name, dtype, shape))


def _size(path: Path, name: str, dtype: str, shape: list[int]) -> int:
    """Return the size of a tensor's file, which is looked at before room is made for it."""
    try:
        held = path.stat().st_size
        if (size := DTYPES[dtype]) is None:
            read_texts(path, tuple(shape))
        elif held != size * math.prod(shape):
            raise BadInput(
                f"{path}: holds {held} bytes, tensor '{name}' of shape {shape} in {dtype} takes "
                f"{size * math.prod(shape)}"
            )
        elif dtype == "bool" and held and np.fromfile(path, np.uint8).max() > 1:
            raise BadInput(f"{path}: tensor '{name}' is bool and holds a byte other than 0 and 1")
    except OSError as error:
        raise BadInput(f"{path}: tensor '{name}' cannot be read: {error}") from None
    return held


def add_options(plan: Plan, options: Mapping[str, Any], where: str) -> None:
    """Add session options to a plan; one of None is not set. Raises BadInput naming one that no runner takes."""
    for key, value in options.items():
        if value is None:
            continue
        if wanted := expected_value(key, value):
            raise BadInput(f"{where}: option '{key}' is {value!r:.100}, expected {wanted}")
        if key == "provider_options":
            for name, text in value.items():
                plan.add(Entry(role=Role.PROVIDER_OPTION, name=name, text=text))
        else:
            text = str(int(value)) if isinstance(value, bool) else str(value)
            plan.add(Entry(role=Role.OPTION, name=key, text=text))


def read_arrivals(path: Path) -> np.ndarray:
    """Return arrival times, int64 nanoseconds. Raises BadInput naming the file."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    if len(raw) % 8 or not raw:
        raise BadInput(f"{path}: expected int64 arrival times, got {len(raw)} bytes")
    arrivals = np.frombuffer(raw, dtype="<i8")
    if arrivals[0] < 0 or (arrivals[1:] < arrivals[:-1]).any() or arrivals[-1] > _LATEST_NS:
        raise BadInput(f"{path}: expected arrival times from 0 to 2^60 ns that do not fall")
    return arrivals
