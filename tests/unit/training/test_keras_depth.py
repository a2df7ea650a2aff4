"""A model of Keras may have more layers than Python calls itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from checkouts import environment_python
from transect.domain.paths import PYTHONPATH

# Fewer calls than Python's own 1,000, so that fewer layers do.
CODE = """
import sys, keras
from transect.training.frameworks._keras_model import build_model
from transect.training.layers import Branches, Flatten, GlobalAveragePool, Linear, ReLU, Residual
sys.setrecursionlimit(300)
layers = (Flatten(), *(Residual((ReLU(), ReLU())),) * 120, Linear(4, 2))
model, variables = build_model(keras, layers, (1, 2, 2))
assert sys.getrecursionlimit() == 300
print(len(model.layers), sorted(variables))
branches = (*(Branches(((ReLU(),) * 9,)),) * 120, GlobalAveragePool(), Linear(1, 2))
build_model(keras, branches, (1, 2, 2))
"""


@pytest.mark.env
def test_a_deep_model_of_residual_layers_or_branches_is_built(tmp_path: Path) -> None:
    python = environment_python("keras-jax", tmp_path)
    variables = os.environ | {"PYTHONPATH": PYTHONPATH, "KERAS_BACKEND": "jax"}
    done = subprocess.run([python, "-c", CODE], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[0] == str(3 + 3 * 120)
    assert "121.weight" in done.stdout
