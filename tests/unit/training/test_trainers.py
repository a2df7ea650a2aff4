"""Trainers of every framework, of whole models and of parts, compute what numpy's does in float64."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checkouts import environment_python
from transect.training.frameworks import FRAMEWORKS, PartFramework
from warm import warm

ENVIRONMENTS = {
    "numpy": ("base", "fp64 fp32"),
    "torch": ("torch", "fp64 fp32 amp-bf16"),
    "tensorflow": ("tensorflow", "fp64 fp32 amp-bf16"),
    "mxnet": ("mxnet", "fp64 fp32"),
    "keras-tensorflow": ("tensorflow", "fp64 fp32"),
    "keras-torch": ("torch", "fp64 fp32"),
    "keras-jax": ("keras-jax", "fp64 fp32"),
    "jax": ("keras-jax", "fp64 fp32 amp-bf16"),
    "keras-2": ("horovod-tensorflow", "fp64 fp32"),
}
# bfloat16 has 8 bits, which the divisions of a batch norm of few samples amplify.
LIMITS = {"fp64": 1e-13, "fp32": 2e-6, "amp-bf16 mlp": 0.02, "amp-bf16 residual": 0.15}
# Sums over micro-batches, in another order.
PART_LIMITS = {"fp64": 1e-12, "fp32": 2e-6, "amp-bf16": 0.05}


@pytest.mark.env
@pytest.mark.parametrize("framework", ENVIRONMENTS)
def test_a_trainer_computes_what_numpy_computes(framework, tmp_path):
    environment, precisions = ENVIRONMENTS[framework]
    script = Path(__file__).with_name("trainer_checks.py")
    python, found = environment_python(environment, tmp_path), {}
    # A process has one precision: to Keras it is a setting of all.
    for precision in precisions.split():
        done = warm(python).run(script, framework, precision)
        assert done.returncode == 0, done.stderr
        found |= json.loads(done.stdout.splitlines()[-1])
    assert {name.split()[0] for name in found} == set(precisions.split())
    for name, off in found.items():
        precision, model, *_ = name.split()
        limit = LIMITS.get(precision) or LIMITS[f"{precision} {model}"]
        limit = PART_LIMITS[precision] if name.endswith("in_parts") else limit
        assert off.pop("load") < 1e-7, name
        assert all(value < limit for value in off.values()), (name, off)
        # Not float64 by another name.
        assert precision == "fp64" or max(off.values()) > 1e-9, (name, off)


@pytest.mark.env
@pytest.mark.parametrize("framework", [name for name in ENVIRONMENTS if name.startswith(("keras", "jax"))])
def test_one_thread_computes_when_a_cell_has_one(framework, tmp_path):
    python = environment_python(ENVIRONMENTS[framework][0], tmp_path)
    done = warm(python).check(Path(__file__).with_name("trainer_checks.py"), framework, "threads")
    busy = json.loads(done.stdout.splitlines()[-1])
    # Others only hand over work.
    assert busy[0] >= 10 and sum(busy[1:]) <= 0.2 * busy[0]


def test_frameworks_in_python_have_parts():
    has = {name for name in FRAMEWORKS if isinstance(FRAMEWORKS.get(name), PartFramework)}
    # Half of whose ranks are numpy's; what its other half lacks is refused.
    assert has - {"go+numpy"} == set(ENVIRONMENTS)
    assert "mpi-pipeline" not in FRAMEWORKS.get("go+numpy").program_strategies
