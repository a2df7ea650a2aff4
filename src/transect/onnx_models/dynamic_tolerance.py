"""How far two correct executions of a dynamically quantised file may lie apart, on equal batches.

A layer with dynamic ranges takes step s and zero point z from the least and largest element x of its
batch, and computes s t sum (q - z) w, where q = round(x / s) + z, and t w are the weights. The sum is of
integers, below 2^31: exact in every build. Executions differ in the float32 arithmetic around it, by
some roundings of u = 2^-24, and so do outputs; but where x / s lies so near the middle of two
integers that this decides, q is the other one, and the layer is off by one whole step of one input.

- A flip is of one step, the conversion's own rounding of at most half a step: twice its largest effect.
- Roundings of relative size d decide x / s with a probability of about 2 * 255 d, 6e-5 at d = 2 u: few
  elements flip, each in its own row, unless it is the largest of its batch. Of a small model one flip
  reaches as far as the conversion does at its worst, so the largest difference does not tell the two
  files apart. The mean over all elements does: flips are a small share of it, and the outputs of
  the float32 file, in which nothing is rounded, have the conversion's whole mean distance.

Ranges are of a batch: outputs of other batches are outputs of another model, so all of this holds
between runs of the same rows in the same batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_UNIT_ROUNDOFF = 2.0**-24
# As other lowered files: few executions are measured, room for the tails, less than half of the way.
_ROOM, _SHARE, _TAILS = 8, 0.45, 1.5
_ARITHMETIC = 32 * _UNIT_ROUNDOFF
# Rows with a flip that no measured execution had; of few rows, one.
_FLIPPED = 0.01

DYNAMIC_RULE = (
    "of floating-point outputs, per size of batch: largest difference 2 * max(spread, distance), mean "
    "difference max(8 * mean_spread, 32 u * output_scale + tolerance * max(0.01, 1 / rows)), and at most "
    "0.45 mean_distance, so that outputs of the float32 file do not pass; spread and mean_spread are "
    "of other executions of the converted file on the same batches (graph optimisation off and basic, "
    "2 threads, inputs changed by 4 u) to its expected outputs, distance and mean_distance those of "
    "the float32 file's outputs; u = 2^-24. Where mean_spread itself exceeds 0.45 mean_distance the mean's "
    "tolerance is 1.5 * mean_spread, and tolerance_from says so"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DynamicTolerance:
    """The largest and the mean difference that pass, what they are from, and what was measured.

    `tolerance_from` is of `mean_tolerance`: `executions`, `one step`, `distance to float32`, or `executions
    that differ like float32`, with which outputs of the float32 file may pass.
    """

    tolerance: float
    mean_tolerance: float
    tolerance_from: str
    spread: float
    mean_spread: float
    distance: float
    mean_distance: float


def dynamic_tolerance(expected: np.ndarray, others: Sequence[np.ndarray], float32: np.ndarray) -> DynamicTolerance:
    """Return the tolerance of one floating-point output (rows, ...) by `DYNAMIC_RULE`.

    `others` are the output in other executions of the converted file on the same batches, `float32`
    that of the float32 file. All are finite and of one shape, and not empty.
    """
    right = expected.astype(np.float64)
    apart = [np.abs(run.astype(np.float64) - right) for run in others]
    converted = np.abs(float32.astype(np.float64) - right)
    spread = max((float(difference.max()) for difference in apart), default=0.0)
    mean_spread = max((float(difference.mean()) for difference in apart), default=0.0)
    distance, mean_distance = float(converted.max()), float(converted.mean())
    arithmetic = _ARITHMETIC * float(np.abs(right).max())
    tolerance = max(2 * max(spread, distance), arithmetic)
    rows = len(right) if right.ndim else 1
    mean, source = max(
        (_ROOM * mean_spread, "executions"), (arithmetic + tolerance * max(_FLIPPED, 1 / rows), "one step")
    )
    if 0 < _SHARE * mean_distance < mean:
        mean, source = _SHARE * mean_distance, "distance to float32"
        if mean_spread > mean:
            mean, source = _TAILS * mean_spread, "executions that differ like float32"
    return DynamicTolerance(
        tolerance=tolerance,
        mean_tolerance=mean,
        tolerance_from=source,
        spread=spread,
        mean_spread=mean_spread,
        distance=distance,
        mean_distance=mean_distance,
    )


def jiggled(inputs: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Return inputs whose float32 numbers are each 4 u larger or smaller: other builds round like this."""
    signs = np.random.default_rng(seed)
    return {
        name: (array * (1 + 4 * _UNIT_ROUNDOFF * signs.choice((-1.0, 1.0), array.shape))).astype(array.dtype)
        if array.dtype.kind == "f"
        else array
        for name, array in inputs.items()
    }
