"""What is said of a runner's outputs: by name, shape, type and kind. Needs numpy only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transect.domain.errors import BadInput
from transect.onnx_models.tensors import NoTensor
from transect.runtimes.outputs import judge
from transect.runtimes.plan_file import Entry, Level, Plan, Role
from transect.runtimes.programs import write_outputs_header

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


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([[1, [2]]], "expected a, b"),
        (None, "expected a, b"),
        ([[1, [2]], [99, [2]]], "output 'b' is described as [99, [2]]"),
        ([[1, [2]], 7], "output 'b' is described as 7"),
    ],
)
def test_outputs_that_a_program_does_not_describe_are_named(tmp_path: Path, outputs: Any, words: str) -> None:
    plan = Plan(level=Level.LATENCY, entries=[Entry(role=Role.OUTPUTS, text=str(tmp_path))])
    plan.entries += [Entry(role=Role.OUTPUT, name=name, dtype="float32") for name in "ab"]
    with pytest.raises(BadInput, match=re.escape(words)):
        write_outputs_header(plan, 0, outputs)
    assert not (tmp_path / "header.json").exists()
