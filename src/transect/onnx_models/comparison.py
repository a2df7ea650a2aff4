"""How far two sets of outputs lie apart, and whether that is too far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from transect.domain.errors import BadInput
from transect.onnx_models.tensors import NoTensor, type_name

Outputs = Mapping[str, np.ndarray | NoTensor]


def differences(found: Outputs, wanted: Outputs, *, stand_ins: Mapping[str, str] | None = None) -> dict[str, float]:
    """Return how far each tensor of `wanted` lies from the one of its name in `found`.

    `stand_ins` names, by the type that is expected, the one that a library without it gives: int32
    for int64. No other type passes for another one.

    Of floating-point numbers the largest absolute difference, infinite where one of the two is not
    finite; of integers and texts the share of elements that differ. Raises BadInput naming an
    output that is missing, or has another shape or type.
    """
    apart = {}
    for name, expected in wanted.items():
        if name not in found:
            raise BadInput(f"output '{name}' is missing: there are {', '.join(found)}")
        given = found[name]
        if mismatch := other_kind(name, given, expected, stand_ins or {}):
            raise BadInput(mismatch)
        if isinstance(expected, np.ndarray) and isinstance(given, np.ndarray):
            apart[name] = _apart(given, expected)
    return apart


def largest_differences(runs: Iterable[Outputs], wanted: Outputs) -> dict[str, float]:
    """Return the largest of `differences` of each output over several runs."""
    worst: dict[str, float] = {}
    for run in runs:
        for name, apart in differences(run, wanted).items():
            worst[name] = max(worst.get(name, 0.0), apart)
    return worst


def other_kind(
    name: str, given: np.ndarray | NoTensor, expected: np.ndarray | NoTensor, stand_ins: Mapping[str, str] | None = None
) -> str | None:
    """Say that an output has another type or shape than is expected, or return None.

    Texts are of one type, however they are kept. Of what is no tensor only the kind counts.
    """
    if isinstance(expected, np.ndarray) and isinstance(given, np.ndarray):
        kind = type_name(expected)
        alike = given.shape == expected.shape and type_name(given) in {kind, (stand_ins or {}).get(kind)}
    else:
        alike = isinstance(expected, NoTensor) and isinstance(given, NoTensor) and expected.is_like(given)
    return None if alike else f"output '{name}' is {_words(given)}, expected {_words(expected)}"


def _words(value: np.ndarray | NoTensor) -> str:
    return value.kind if isinstance(value, NoTensor) else f"{value.dtype} {list(value.shape)}"


def _apart(found: np.ndarray, wanted: np.ndarray) -> float:
    if not wanted.size:
        return 0.0
    if wanted.dtype.kind != "f":
        return float((found != wanted).mean())
    with np.errstate(invalid="ignore"):
        distance = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    return float(distance.max()) if np.isfinite(distance).all() else float("inf")
