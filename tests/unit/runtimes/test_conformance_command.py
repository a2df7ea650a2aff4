"""`transect conformance`: what it runs, shows and refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.env


def transect(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "transect", "conformance", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_runs_tests_and_what_onnx_runtime_refuses_is_no_error(tmp_path):
    done = transect("python", "--only", "test_cast*FLOAT*", "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["opsets"] == {"25": {"pass": 16}, "28": {"failed": 8}}
    (refused,) = summary["not_passed"]
    assert refused["reason"].startswith("Unsupported model IR version")
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"verdicts.json", "runner.log", "tests"}


def test_the_command_shows_wrong_outputs_and_ends_with_1():
    done = transect("python", "--only", "test_dft*")
    assert done.returncode == 1, done.stderr
    assert "differs in" in done.stdout and "test_dft_inverse" in done.stdout
    assert "0 of 10 tests pass; ONNX 1.23.2 has 1884" in done.stdout


BAD = {
    "unknown runtime": (["pyhton"], 2, "did you mean 'python'"),
    "no onnx": (["torch-eager"], 2, "runtime 'torch-eager' executes no ONNX models"),
    "unknown provider": (["python", "--provider", "tpu"], 3, "'tpu'"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_run_is_told_in_one_line(what):
    arguments, code, message = BAD[what]
    done = transect(*arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
