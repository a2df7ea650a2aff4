"""Whether a run's outputs are those that a test expects, by the rules of ONNX's own backend test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from transect.onnx_models.tensors import DTYPES, NoTensor, read_tensors, tensor_types

# onnx.backend.test.runner: two steps of a bfloat16, whose mantissa has seven bits.
BFLOAT16_RTOL = 2.0**-6


def difference(given: Path, expected: Path, *, rtol: float, atol: float) -> str | None:
    """Return what differs in the first output that does, or None. Both are folders with a header.

    Names, shapes and types are equal; floating-point numbers lie within `atol + rtol |expected|`,
    a NaN where one is expected; everything else is exactly the same. Raises BadInput naming a file
    that is missing or is not what its header says.
    """
    types, wanted = tensor_types(given), tensor_types(expected)
    if list(types) != list(wanted):
        return f"outputs are {', '.join(types) or 'none'}, expected {', '.join(wanted)}"
    for name, dtype in wanted.items():
        if types[name] != dtype:
            return f"output '{name}' is {types[name]}, expected {dtype}"
    # The driver's environment has no bfloat16.
    got, right = read_tensors(given, bits=True), read_tensors(expected, bits=True)
    for name, dtype in wanted.items():
        if wrong := _wrong(got[name], right[name], dtype, rtol, atol):
            return f"output '{name}' {wrong}"
    return None


def _wrong(
    given: np.ndarray | NoTensor, expected: np.ndarray | NoTensor, dtype: str, rtol: float, atol: float
) -> str | None:
    assert dtype in DTYPES
    assert not isinstance(given, NoTensor)
    assert not isinstance(expected, NoTensor)
    if given.shape != expected.shape:
        return f"has shape {list(given.shape)}, expected {list(expected.shape)}"
    got, right = _numbers(given, dtype), _numbers(expected, dtype)
    if right.dtype.kind == "f":
        if dtype == "bfloat16":
            rtol = max(rtol, BFLOAT16_RTOL)
        same = np.isclose(got, right, rtol=rtol, atol=atol, equal_nan=True)
    else:
        same = np.asarray(got == right)
    if same.all():
        return None
    wrong = np.flatnonzero(~same.reshape(-1))
    first = int(wrong[0])
    return (
        f"differs in {len(wrong)} of {same.size}, first at {first}: {_shown(got, first)}, "
        f"expected {_shown(right, first)}"
    )


def _numbers(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return what is compared: floating-point numbers as float64, which holds each exactly."""
    if dtype == "bfloat16":
        # The upper half of a float32.
        bits = array.astype(np.uint32) << 16
        return bits.view(np.float32).astype(np.float64)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _shown(array: np.ndarray, place: int) -> str:
    value: Any = array.reshape(-1)[place]
    if isinstance(value, str):
        return repr(value)
    return f"{value:.7g}" if array.dtype.kind == "f" else str(value)
