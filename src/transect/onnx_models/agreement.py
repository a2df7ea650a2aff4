"""Whether a run's outputs are those that a test expects, by the rules of ONNX's own backend test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.onnx_models.typed_tensors import Tensor

__all__ = ["BFLOAT16_RTOL", "difference"]

# onnx.backend.test.runner: two steps of a bfloat16, whose mantissa has seven bits.
BFLOAT16_RTOL = 2.0**-6


def difference(
    given: Sequence[Tensor], expected: Sequence[Tensor], *, rtol: float, atol: float
) -> str | None:
    """Return what differs in the first output that does, or None.

    Names, shapes and types are equal; floating-point numbers lie within `atol + rtol |expected|`,
    a NaN where one is expected; everything else is exactly the same.
    """
    names = [[tensor.name for tensor in side] for side in (given, expected)]
    if names[0] != names[1]:
        return f"outputs are {', '.join(names[0]) or 'none'}, expected {', '.join(names[1])}"
    for one, other in zip(given, expected, strict=True):
        if wrong := _wrong(one, other, rtol, atol):
            return f"output '{one.name}' {wrong}"
    return None


def _wrong(given: Tensor, expected: Tensor, rtol: float, atol: float) -> str | None:
    assert expected.array is not None
    if given.array is None:
        return f"is {given.dtype}, expected a tensor"
    if given.dtype != expected.dtype:
        return f"is {given.dtype}, expected {expected.dtype}"
    if given.array.shape != expected.array.shape:
        return f"has shape {list(given.array.shape)}, expected {list(expected.array.shape)}"
    got, right = _numbers(given), _numbers(expected)
    if right.dtype.kind == "f":
        if expected.dtype == "bfloat16":
            rtol = max(rtol, BFLOAT16_RTOL)
        same = np.isclose(got, right, rtol=rtol, atol=atol, equal_nan=True)
    else:
        same = np.asarray(got == right)
    if same.all():
        return None
    wrong = np.flatnonzero(~same.reshape(-1))
    first = int(wrong[0])
    return (
        f"differs in {len(wrong)} of {same.size}, first at {first}: "
        f"{_shown(got, first)}, expected {_shown(right, first)}"
    )


def _numbers(tensor: Tensor) -> np.ndarray:
    """Return what is compared: floating-point numbers as float64, which holds each exactly."""
    assert tensor.array is not None
    if tensor.dtype == "bfloat16":
        # The upper half of a float32.
        bits = tensor.array.astype(np.uint32) << 16
        return bits.view(np.float32).astype(np.float64)
    return tensor.array.astype(np.float64) if tensor.array.dtype.kind == "f" else tensor.array


def _shown(array: np.ndarray, place: int) -> str:
    value: Any = array.reshape(-1)[place]
    return (
        repr(value)
        if isinstance(value, str)
        else f"{value:.7g}"
        if array.dtype.kind == "f"
        else str(value)
    )
