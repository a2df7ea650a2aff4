"""What a function of the user's gives, and nobody can ask in each step."""

from __future__ import annotations

import pytest

from warm import warm

pytestmark = pytest.mark.env

DATA = """
import numpy as np

x, y = np.arange(8.0).reshape(4, 2), np.arange(4) % 2

def pairs():
    return (x, y), (x, y)

def arrays():
    return x, y

def mapping():
    return {"x": x, "y": y}
"""
READ = """
import sys
import numpy as np
from transect.domain.errors import BadInput
from transect.training.frameworks._dataset_reader import DatasetReader

for name in ("pairs", "arrays", "mapping"):
    try:
        DatasetReader({"path": sys.argv[1], "name": name}, 0, np.float64)
    except BadInput as error:
        print(error)
"""


def test_arrays_are_not_asked_in_each_step(torch_python, tmp_path):
    (tmp_path / "mine.py").write_text(DATA)
    run = warm(torch_python).run("-c", READ, str(tmp_path / "mine.py"))
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert [line.split(":")[1].split()[0] for line in lines] == ["pairs", "arrays", "mapping"]
    assert all("gives no dataset that could be asked in each step" in line for line in lines)
