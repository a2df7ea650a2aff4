"""Ends of models as some exporters write them: what ONNX Runtime takes has a plan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from transect.onnx_models.ends import model_ends
from transect.onnx_models.tensors import write_tensors
from transect.runtimes.plan_file import MAX_AXES, Plan, Role, read_plan, write_plan
from transect.runtimes.serving_plans import Serving


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def _end(name: str, axes: tuple[int, ...]) -> bytes:
    # A length is a varint: of -1 it is ten bytes.
    lengths = [b"\xff" * 9 + b"\1" if axis < 0 else bytes([axis]) for axis in axes]
    shape = b"".join(_field(1, b"\x08" + length) for length in lengths)
    return _field(1, name.encode()) + _field(2, _field(1, b"\x08\x01" + _field(2, shape)))


@pytest.mark.parametrize(
    ("takes", "gives", "told"),
    [((-1, 4), (-1, 4), (-1, 4)), ((7, 4), (1,) * (MAX_AXES + 1), (-1,)), ((7, 4), (7,) * MAX_AXES, (7,) * MAX_AXES)],
)
def test_an_axis_of_no_length_and_many_axes_have_a_plan(tmp_path: Path, takes, gives, told) -> None:
    (tmp_path / "m.onnx").write_bytes(_field(7, _field(11, _end("x", takes)) + _field(12, _end("y", gives))))
    write_tensors(tmp_path / "inputs", {"x": np.zeros((7, 4), np.float32)})
    files = {"model": tmp_path / "m.onnx", "inputs": tmp_path / "inputs", "outputs": tmp_path / "o", "out": tmp_path}
    plan: Plan = Serving(**files).plan()
    write_plan(tmp_path / "plan.bin", plan)
    (output,) = read_plan(tmp_path / "plan.bin").of(Role.OUTPUT)
    assert output.shape == told


@pytest.mark.parametrize("version", [3, 4])
def test_a_weight_is_an_input_with_a_default_from_version_4_on(tmp_path: Path, version: int) -> None:
    graph = _field(5, _field(8, b"w")) + b"".join(_field(11, _end(name, (4,))) for name in "xw")
    (tmp_path / "m.onnx").write_bytes(bytes([8, version]) + _field(7, graph + _field(12, _end("y", (4,)))))
    ends = model_ends(tmp_path / "m.onnx")
    assert ([*ends.inputs], [*ends.defaults]) == (["x"], ["w"] if version == 4 else [])
