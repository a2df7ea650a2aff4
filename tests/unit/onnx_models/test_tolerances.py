"""Tolerances of made and of converted models, from numbers. Needs numpy only."""

from __future__ import annotations

import math

import numpy as np
import pytest

from transect.onnx_models.accumulation import imprecise_outputs, made_tolerances
from transect.onnx_models.lowered_tolerance import lowered_tolerance
from transect.onnx_models.tensors import NoTensor

EXACT = np.linspace(-2.0, 2.0, 9)
MAX_LENGTH = 63
ROUNDING = math.sqrt(MAX_LENGTH + 1) * 2.0**-24 * 2.0


def made(error: float, longest: int = MAX_LENGTH) -> float:
    """Return the tolerance of an output whose framework errs by `error`."""
    return made_tolerances({"y": EXACT + error}, {"y": EXACT}, longest, computes=True)["y"]


def test_a_tolerance_follows_the_framework_s_error_up_to_its_ceiling() -> None:
    assert made(0.0) == 2 * ROUNDING
    assert made(5 * ROUNDING) == pytest.approx(160 * ROUNDING)
    # 5 % off: 32 times that would be 3.2.
    for longest in (MAX_LENGTH, 0):
        assert made(0.1, longest) == 2.0**-10 * 2.0
        assert made(np.nan, longest) == 2.0**-10 * 2.0


@pytest.mark.parametrize("error", [0.1, 33 * ROUNDING, np.nan, np.inf])
def test_a_framework_that_is_not_float32_is_found_where_the_sum_is_known(error: float) -> None:
    outputs = {"y": EXACT + error, "n": np.arange(3), "m": NoTensor("map")}
    exact = {"y": EXACT, "n": np.arange(3)}
    (ratio,) = imprecise_outputs(outputs, exact, MAX_LENGTH).values()
    assert ratio == pytest.approx(error / ROUNDING) if np.isfinite(error) else ratio == np.inf
    assert imprecise_outputs(outputs, exact, 0) == imprecise_outputs(outputs, None, MAX_LENGTH) == {}
    assert imprecise_outputs({"y": EXACT + 31 * ROUNDING}, exact, MAX_LENGTH) == {}


REAL, CLASSES = np.array([1.0, -4.0], np.float32), np.array(["a", "b"], object)


@pytest.mark.parametrize(
    ("spread", "distance", "precision", "tolerance", "source"),
    [
        (0.1, 5.0, "int8-static", 0.8, "executions"),
        (0.0, 5.0, "int8-static", 8 * 2.0**-8, "roundoff"),
        (0.0, 5.0, "fp16", 8 * 2.0**-11, "roundoff"),
        # What was 4 times the conversion error: 21.48.
        (0.5, 5.37, "int8-static", 0.45 * 5.37, "distance to float32"),
        (0.0, 0.002, "fp16", 0.0009, "distance to float32"),
        (0.5, 1.0, "int8-static", 0.75, "executions that differ like float32"),
        # A conversion that changes nothing of this output has no distance.
        (0.0, 0.0, "fp16", 8 * 2.0**-11, "roundoff"),
    ],
)
def test_a_lowered_tolerance_is_what_executions_differ_by_and_less_than_the_conversion(
    spread: float, distance: float, precision: str, tolerance: float, source: str
) -> None:
    found = lowered_tolerance(REAL, spread, distance, precision)
    assert (found.tolerance, found.source) == (pytest.approx(tolerance), source)


@pytest.mark.parametrize(
    ("spread", "distance", "tolerance", "source"),
    [
        (0.0, 0.0, 0.01, "roundoff"),
        (0.003, 0.5, 0.024, "executions"),
        (0.003, 0.04, 0.018, "distance to float32"),
        (0.4, 1.0, 0.05, "largest share"),
        (0.4, 0.1, 0.05, "largest share"),
    ],
)
def test_a_share_of_classes_is_never_near_all_of_them(
    spread: float, distance: float, tolerance: float, source: str
) -> None:
    found = lowered_tolerance(CLASSES, spread, distance, "int8-dynamic")
    assert (found.tolerance, found.source) == (pytest.approx(tolerance), source)
