"""Parts of models by every framework that has them: against numpy's whole model, and by differences."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from checkouts import environment_python
from transect.training.frameworks import FRAMEWORKS, PartFramework
from warm import warm

# With the cases of part_cases.py; compiling takes XLA half a minute for all.
ENVIRONMENTS = {
    "numpy": ("base", "0 1 2 slopes fp32"),
    "torch": ("torch", "0 1 2 slopes fp32 amp-bf16"),
    "tensorflow": ("tensorflow", "0 1 2 slopes fp32 amp-bf16"),
    "keras-tensorflow": ("tensorflow", "0 1"),
    "keras-torch": ("torch", "0 1"),
    "keras-jax": ("keras-jax", "1 slopes"),
    "keras-2": ("horovod-tensorflow", "0 1"),
    "mxnet": ("mxnet", "0 1 2 slopes fp32"),
}


def run(framework, folder):
    environment, usual = ENVIRONMENTS[framework]
    python = sys.executable if environment == "base" else environment_python(environment, folder)
    script = Path(__file__).with_name("part_cases.py")
    done = warm(python).run(script, framework, *usual.split())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.env
@pytest.mark.parametrize("framework", ENVIRONMENTS)
def test_parts_are_the_whole_model(framework, tmp_path):
    found = run(framework, tmp_path)
    assert list(found) == ENVIRONMENTS[framework][1].split()
    # bfloat16 has 8 bits; gradients here are up to 0.5.
    limits = {"fp32": 2e-6, "amp-bf16": 0.05}
    for case, off in found.items():
        if case == "slopes":
            assert off < 1e-6, off
        else:
            assert max(off.values()) < limits.get(case, 1e-12), (case, off)


def test_frameworks_in_python_have_parts():
    has = {name for name in FRAMEWORKS if isinstance(FRAMEWORKS.get(name), PartFramework)}
    # Half of whose ranks are numpy's; what its other half lacks is refused.
    assert has - {"go+numpy"} == set(ENVIRONMENTS)
    assert "mpi-pipeline" not in FRAMEWORKS.get("go+numpy").program_strategies
