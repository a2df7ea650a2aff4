"""Modules of torch, trained by JAX through their exported operators, follow torch's autograd in float64."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checkouts import environment_python
from warm import warm

TRAINED = ("Norms", "Words", "Numbered")
# What is asked for, and what lacks.
REFUSED = {
    "Dropped": "Dropped draws random numbers in its forward pass",
    "Factors": "torchax has no aten.geqrf.default, of which Factors is made",
    "Counts": "Counts changes steps, which only torch would keep",
    "Branches": "torch cannot export Branches",
}


@pytest.mark.env
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("precision", "most"), [("fp64", 1e-11), ("fp32", 1e-4)])
def test_a_module_is_trained_as_torch_trains_it_or_it_is_said_what_lacks(precision, most, tmp_path):
    script = Path(__file__).with_name("module_in_jax.py")
    python = environment_python("torchax", tmp_path)
    done = warm(python).run(script, precision, *TRAINED, *REFUSED)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for name, reason in REFUSED.items():
        assert isinstance(found[name], str) and reason in found[name], (name, found[name])
    for name in TRAINED:
        assert found[name].pop("moved") > 1e-3
        # Also false for NaN.
        assert all(value <= most for value in found[name].values()), (name, found[name])
        assert precision == "fp64" or max(found[name].values()) > 1e-9
