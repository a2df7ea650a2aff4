"""How commands end: nobody reads on, a file is not there, a signal breaks them off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from transect.cli.main import app
from transect.domain.errors import BadInput, Interruption, say_fault

STUDY = """
name: s
train: {grids: [{workloads: [iris-mlp], frameworks: [numpy], strategies: [single]}]}
"""


# By rich, by typer, and by ourselves.
@pytest.mark.env
@pytest.mark.parametrize("arguments", [["check", "s.yaml"], ["check", "s.yaml", "--json"], ["--version"]])
def test_a_command_whose_output_nobody_reads_ends_in_silence(tmp_path: Path, arguments) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "transect", *arguments],
            cwd=tmp_path,
            stdout=writes,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writes)
    # As a shell tells of a process that SIGPIPE ended.
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["predict", "nope", "tickets.jsonl"], "nope: no such file or folder"),
        (["predict", ".", "nope.jsonl"], "nope.jsonl: no such file or folder"),
        (["export-step", "nope.py:make", "--out", "step"], "nope.py:make: expected MODULE:FACTORY"),
        (["export-step", "nope", "--out", "step"], "nope: expected MODULE:FACTORY"),
        (["check-export", "nope.onnx", "--against", "nope"], "nope: expected MODULE:FACTORY"),
        (["check-export", "nope.onnx", "--against", "a:b"], "nope.onnx: no such file"),
    ],
)
def test_files_are_looked_for_before_an_environment_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], named: str
) -> None:
    monkeypatch.setenv("TRANSECT_ENVS", str(tmp_path / "environments"))
    monkeypatch.chdir(tmp_path)
    # A test of the tier `fast` fails when it starts a process, as a build does.
    with pytest.raises(BadInput) as refused:
        app(arguments, standalone_mode=False)
    assert str(refused.value).startswith(named)
    assert not (tmp_path / "environments").exists()


def test_what_goes_wrong_while_an_interruption_is_handled_is_no_fault(capsys: Any) -> None:
    try:
        try:
            raise Interruption(143)
        finally:
            os.close(os.open(os.devnull, os.O_RDONLY) + 4096)
    except OSError as error:
        assert say_fault(error) == 143
    assert capsys.readouterr().err == ""
