"""`transect run STUDY`: it becomes Snakemake, whatever the folder that it is called in holds."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from checkouts import ROOT
from transect.cli.study import _as_text

SMALL = """name: small
train:
  grids:
    - {workloads: [iris-mlp], frameworks: [numpy], strategies: [single]}
"""


@pytest.mark.parametrize(
    "name", ["2024", "1e5", "nan", "a # b", "'x'", "it's", "it'", '"q"', "[a]", "a: b", "ü b", "", "-x", "#a", "x=y"]
)
def test_snakemake_reads_the_text_that_was_given(name):
    from snakemake.cli import parse_config

    assert parse_config([f"results={_as_text(name)}"]) == {"results": name}


def test_what_the_folder_holds_is_not_taken_for_something_else(tmp_path):
    """A profile is its own; modules of Python's names, a folder of results that YAML would read otherwise."""
    (tmp_path / "small.yaml").write_text(SMALL)
    shutil.copytree(ROOT / "profiles" / "local", tmp_path / "profiles" / "mine")
    for name in ("statistics", "yaml", "pandas"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not this one')\n")
    command = [sys.executable, "-P", "-m", "transect", "run", "small.yaml", "--profile", "mine", "--results", "res #1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "res #1" / "small" / "report.html").exists() and not (tmp_path / "res").exists()
