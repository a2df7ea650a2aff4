"""The portable step against torch.optim: 100 updates of each optimiser and option."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from warm import warm

pytestmark = pytest.mark.env
SCRIPT = Path(__file__).with_name("portable_step_cases.py")
# The cases are functions of the script, which needs torch to be imported.
CASES = [
    node.name
    for node in ast.parse(SCRIPT.read_text()).body
    if isinstance(node, ast.FunctionDef)
    and any(isinstance(d, ast.Name) and d.id == "case" for d in node.decorator_list)
]
EACH = pytest.mark.parametrize("name", CASES)
# Float64: rounding alone, over 100 updates. Float32: the same of its own rounding.
TOLERANCE = {"single_precision": 1e-5}


@pytest.fixture(scope="module")
def results(torch_python, tmp_path_factory):
    run = warm(torch_python).run(SCRIPT, tmp_path_factory.mktemp("steps"))
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@EACH
def test_losses_and_state_are_those_of_torch(results, name):
    result, tolerance = results[name], TOLERANCE.get(name, 1e-11)
    assert result["end"] == result["begin"] + 100
    # torch's SGD does not count its steps.
    assert result["begin"] == (7 if name == "adamw_continued" else 0)
    assert result["loss"] < tolerance
    assert {k: v for k, v in result["state"].items() if v >= tolerance} == {}
    # Otherwise nothing was compared: a loss that stands still, a state that is all zeros.
    assert abs(result["first_loss"] - result["last_loss"]) > 1e-3


@EACH
def test_evaluation_and_inference_are_those_of_torch(results, name):
    assert results[name]["evaluation"] < TOLERANCE.get(name, 1e-11)
