"""The runtime extra-runtime on models whose outputs ONNX tells.

Run it with pytest, by a Python that has transect. An environment that is missing is built first.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from transect.cli.check_plugin import know_plugins
from transect.cli.plugin_checks import answers
from transect.domain.paths import ROOT

know_plugins(None, Path(__file__).resolve().parents[1])


def test_it_answers_as_its_kind_must():
    assert [check for check in answers("runtime", "extra-runtime") if not check.holds] == []


def test_it_computes_matrix_products_as_onnx_tells():
    command = [sys.executable, "-m", "transect", "conformance", "extra-runtime", "--only", "test_matmul_*", "--json"]
    paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["tests"] > 0 and found["not_passed"] == []
