"""How far two correct executions of one file in a lower precision may lie apart, as was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Of the coarsest number that a value passes through: float16 has 11 bits, an integer 8.
_ROUNDOFF = {"fp16": 2.0**-11, "int8-static": 2.0**-8}

# Few executions are measured, of one library on one machine: room for the others.
_ROOM = 8
# Less than half, so that no outputs are within the tolerance of both files.
_SHARE = 0.45
# Where executions of the one file reach as far as the float32 file: room for the tails alone.
_TAILS = 1.5
_MIN_SHARE, _MAX_SHARE = 0.01, 0.05

LOWERED_RULE = (
    "of floating-point outputs max(8 * spread, 2 u * output_scale), and at most 0.45 distance; spread "
    "is the largest distance of other executions of the converted file (graph optimisation off and "
    "basic, 2 threads, other sizes of batch) to its expected outputs; u = 2^-11 of float16, 2^-8 of "
    "int8; distance is that of the expected outputs to those of the float32 file, so that the float32 "
    "file's do not pass. Where spread itself exceeds 0.45 distance the tolerance is 1.5 * spread, and "
    "tolerance_from says so: there, other precisions may pass. Of integers and texts: the share of "
    "elements that may differ, max(8 * spread, 0.01), and at most 0.45 distance and 0.05"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LoweredTolerance:
    """The tolerance of one output, and which part of the rule it comes from.

    `source` is `executions`, `roundoff`, `distance to float32` (which cuts it off), `largest share`,
    or `executions that differ like float32`: then outputs of the float32 file may pass.
    """

    tolerance: float
    source: str


def lowered_tolerance(expected: np.ndarray, spread: float, distance: float, precision: str) -> LoweredTolerance:
    """Return the tolerance of one output by `LOWERED_RULE`.

    `spread` and `distance` as there: the largest absolute differences, of integers and texts shares.
    Floating-point outputs of dynamic ranges have a rule of their own: `dynamic_tolerance`.
    """
    real = expected.dtype.kind == "f"
    if real:
        scale = float(np.abs(expected).max()) if expected.size else 0.0
        floor = 2 * _ROUNDOFF[precision] * scale
    else:
        floor = _MIN_SHARE
    chosen = (_ROOM * spread, "executions") if _ROOM * spread > floor else (floor, "roundoff")
    limits = [chosen]
    if distance > 0:
        limits.append((_SHARE * distance, "distance to float32"))
    if not real:
        limits.append((_MAX_SHARE, "largest share"))
    tolerance, source = min(limits)
    if source == "distance to float32" and spread > tolerance:
        fallback = (_TAILS * spread, "executions that differ like float32")
        tolerance, source = fallback if real else min(fallback, (_MAX_SHARE, "largest share"))
    return LoweredTolerance(tolerance=tolerance, source=source)
