"""What is found out of a module of the user's, and that it and its data are the same wherever they are made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checkouts import environment_python
from warm import warm

FOUND = {
    "Norms": {"draws": False, "not_checkable": None},
    "Dropped": {"draws": True, "not_checkable": None},
    "Rarely": {"draws": True, "not_checkable": None},
    "Turned": "has weights of torch.complex64: expected torch.float32",
    "Single": "fails in float64, which the reference needs: mat1 and mat2 must have the same dtype",
    "Late": "head.weight, head.bias have no shape before a first batch",
}


@pytest.mark.env
@pytest.mark.timeout(3600)
def test_what_a_module_is_and_that_it_is_made_again_as_it_was(tmp_path):
    script = Path(__file__).with_name("own_module_facts.py")
    done = warm(environment_python("torch", tmp_path)).run(script, *FOUND)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("made") == {"order": True, "one for each": True, "samples": True}
    tables = found.pop("tables")
    assert "expected columns besides the target kind" in tables["leak"] and "row 1 is empty" in tables["gap"]
    assert tables["saved"] == 3
    for name, expected in FOUND.items():
        assert found[name] == expected or (isinstance(expected, str) and expected in found[name]), (name, found[name])
