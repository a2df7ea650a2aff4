"""What is said of a runner's outputs: by name, shape, type and kind. Needs numpy only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from transect.onnx_models.tensors import NoTensor
from transect.runtimes import RUNNERS
from transect.runtimes.outputs import judge

ZIPMAP = NoTensor("sequence(map(string,float32))")


@pytest.mark.parametrize(
    "kind",
    [
        "sequence(map(int64,float32))",
        "seq(map(string,tensor(float)))",
        "SequenceInfo(length=2,type=MAP)",
        "list",
        "not a tensor: JavaScript gives tensors only",
    ],
)
def test_a_sequence_is_one_in_the_words_of_every_language(kind: str) -> None:
    assert judge({"p": NoTensor(kind)}, {"p": ZIPMAP}, {}).wrong == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (NoTensor("map(string,float32)"), "map(string,float32)"),
        (NoTensor("optional(sequence(float32))"), "optional(sequence(float32))"),
        (np.zeros((2, 3), np.float32), r"float32 [2, 3]"),
    ],
)
def test_another_kind_or_a_tensor_in_place_of_a_sequence_is_wrong(found: np.ndarray | NoTensor, words: str) -> None:
    (wrong,) = judge({"p": found}, {"p": ZIPMAP}, {}).wrong
    assert wrong == f"output 'p' is {words}, expected {ZIPMAP.kind}"


def test_a_sequence_in_place_of_a_tensor_is_wrong() -> None:
    verdict = judge({"p": ZIPMAP}, {"p": np.zeros((2, 3), np.float32)}, {})
    assert verdict.wrong == [f"output 'p' is {ZIPMAP.kind}, expected float32 [2, 3]"]


def test_differences_are_told_only_where_a_tensor_was_compared() -> None:
    tensor = np.ones((2, 3), np.float32)
    assert judge({"p": ZIPMAP}, {"p": ZIPMAP}, {}).metrics() == {}
    assert judge({"y": tensor[:1]}, {"y": tensor}, {}).metrics() == {}
    metrics = judge({"y": tensor}, {"y": tensor}, {}).metrics()
    assert metrics["max_abs_difference"] == 0.0 and metrics["top1_agreement"] == 1.0


@pytest.mark.env
def test_an_output_too_few_is_named(tmp_path: Path) -> None:
    run = "import pathlib, numpy, outputs; outputs.Outputs(pathlib.Path('out'), ['a', 'b'], {}).append([numpy.zeros(1)], 1)"
    environment = os.environ | {"PYTHONPATH": str(RUNNERS / "python")}
    done = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "BadInput: a run gave 1 outputs, expected a, b" in done.stderr
