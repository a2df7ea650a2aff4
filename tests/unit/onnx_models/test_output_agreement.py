"""Which outputs are those that a test of ONNX expects, and which are others."""

from __future__ import annotations

import numpy as np
import pytest

from transect.onnx_models.tensors import write_tensors
from transect.runtimes.conformance import difference

# --- comparing

NAN, INF = float("nan"), float("inf")


def compared(folder, given, expected):
    """Compare two arrays, or two folders' worth of them by name."""
    for name, side in (("given", given), ("expected", expected)):
        arrays = side if isinstance(side, dict) else {"y": side}
        write_tensors(folder / name, arrays)
    return difference(folder / "given", folder / "expected", rtol=1e-3, atol=1e-7)


SAME = {
    "within rtol": (np.float32([1.0009, -2.0]), np.float32([1.0, -2.0])),
    "within atol": (np.float32([5e-8]), np.float32([0.0])),
    "nan for nan": (np.float64([NAN, 1]), np.float64([NAN, 1])),
    "integers": (np.uint64([2**64 - 1]), np.uint64([2**64 - 1])),
    "texts": (np.array(["a", "é"], object), np.array(["a", "é"], object)),
}


OTHER = {
    "beyond rtol": (np.float32([1.0011]), np.float32([1.0]), "first at 0: 1.0011, expected 1"),
    "beyond atol": (np.float32([2e-7]), np.float32([0.0]), "first at 0: 2e-07, expected 0"),
    "nan for a number": (np.float32([NAN]), np.float32([1.0]), "first at 0: nan, expected 1"),
    "integers are exact": (np.int64([2**53 + 1]), np.int64([2**53]), "differs in 1 of 1"),
    "texts are exact": (np.array(["a"], object), np.array(["A"], object), "'a', expected 'A'"),
    "type": (np.float64([1.0]), np.float32([1.0]), "'y' is float64, expected float32"),
    "shape": (np.float32([[1.0]]), np.float32([1.0]), "'y' has shape [1, 1], expected [1]"),
    "name": ({"z": np.float32([1])}, {"y": np.float32([1])}, "outputs are z, expected y"),
    "order": (
        {"b": np.int8(1), "a": np.int8(1)},
        {"a": np.int8(1), "b": np.int8(1)},
        "outputs are b, a, expected a, b",
    ),
}


@pytest.mark.parametrize("what", SAME)
def test_what_counts_as_the_same(tmp_path, what):
    assert compared(tmp_path, *SAME[what]) is None


@pytest.mark.parametrize("what", OTHER)
def test_what_counts_as_another(tmp_path, what):
    given, expected, message = OTHER[what]
    assert message in compared(tmp_path, given, expected)


def bfloat16(folder, *bits):
    """A folder with a bfloat16 tensor of these bits."""
    write_tensors(folder, {"y": np.array(bits, np.uint16)})
    header = folder / "header.json"
    header.write_text(header.read_text().replace("uint16", "bfloat16"))
    return folder


def test_a_bfloat16_may_be_two_steps_off_and_no_more(tmp_path):
    exact = bfloat16(tmp_path / "one", 0x3F80)
    near = bfloat16(tmp_path / "near", 0x3F82)
    far = bfloat16(tmp_path / "far", 0x3F83)
    assert difference(near, exact, rtol=1e-3, atol=1e-7) is None
    assert "1.023438, expected 1" in difference(far, exact, rtol=1e-3, atol=1e-7)
    integers = tmp_path / "integers"
    write_tensors(integers, {"y": np.array([0x3F80], np.uint16)})
    assert "is uint16, expected bfloat16" in difference(integers, exact, rtol=1e-3, atol=1e-7)
