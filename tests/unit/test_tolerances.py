"""Tolerances of made models, from numbers. Needs numpy only."""

from __future__ import annotations

import math

import numpy as np
import pytest

from transect.onnx_models.accumulation import imprecise_outputs, made_tolerances
from transect.onnx_models.tensors import NoTensor

EXACT = np.linspace(-2.0, 2.0, 9)
LONGEST = 63
ROUNDING = math.sqrt(LONGEST + 1) * 2.0**-24 * 2.0


def made(error: float, longest: int = LONGEST) -> float:
    """Return the tolerance of an output whose framework errs by `error`."""
    return made_tolerances({"y": EXACT + error}, {"y": EXACT}, longest, computes=True)["y"]


def test_a_tolerance_follows_the_framework_s_error_up_to_its_ceiling() -> None:
    assert made(0.0) == 2 * ROUNDING
    assert made(5 * ROUNDING) == pytest.approx(160 * ROUNDING)
    # 5 % off: 32 times that would be 3.2.
    for longest in (LONGEST, 0):
        assert made(0.1, longest) == 2.0**-10 * 2.0
        assert made(np.nan, longest) == 2.0**-10 * 2.0


@pytest.mark.parametrize("error", [0.1, 33 * ROUNDING, np.nan, np.inf])
def test_a_framework_that_is_not_float32_is_found_where_the_sum_is_known(error: float) -> None:
    outputs = {"y": EXACT + error, "n": np.arange(3), "m": NoTensor("map")}
    exact = {"y": EXACT, "n": np.arange(3)}
    (ratio,) = imprecise_outputs(outputs, exact, LONGEST).values()
    assert ratio == pytest.approx(error / ROUNDING) if np.isfinite(error) else ratio == np.inf
    assert imprecise_outputs(outputs, exact, 0) == imprecise_outputs(outputs, None, LONGEST) == {}
    assert imprecise_outputs({"y": EXACT + 31 * ROUNDING}, exact, LONGEST) == {}
