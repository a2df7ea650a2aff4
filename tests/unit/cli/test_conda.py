"""`transect conda`: the same pins, and a system that names the interpreter of what was made of them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import yaml
from typer.testing import CliRunner

from checkouts import ROOT
from transect.cli.main import app
from transect.domain.system import EnvironmentChoice
from transect.planning.environments import lock_hash


def printed(name: str) -> str:
    done = CliRunner().invoke(app, ["conda", name])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_file_has_the_pins_of_the_environment():
    made = yaml.safe_load(printed("base"))
    python, pip, pins = made["dependencies"]
    assert python.startswith("python=3.") and pip == "pip"
    assert pins == {"pip": (ROOT / "envs" / "base" / "requirements.txt").read_text().splitlines()}


def test_what_is_compiled_has_none():
    done = CliRunner().invoke(app, ["conda", "runner-c"])
    assert done.exit_code and "build.sh" in str(done.exception)


@pytest.mark.env
def test_a_client_of_conda_can_solve_it(tmp_path):
    client = next(filter(shutil.which, ("micromamba", "mamba", "conda")), None)
    if client is None:
        pytest.skip("no micromamba, mamba or conda on PATH")
    (tmp_path / "base.yaml").write_text(printed("base"))
    command = [client, "env", "create", "--dry-run", "--file", "base.yaml", "--prefix", "made"]
    assert subprocess.run(command, cwd=tmp_path).returncode == 0


def test_an_interpreter_alone_counts_by_what_it_has_installed(tmp_path):
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    (packages / "numpy-2.4.6.dist-info").mkdir(parents=True)
    choice = EnvironmentChoice(python=f"{tmp_path}/bin/python")
    before = lock_hash("base", choice)
    (packages / "numpy-2.4.6.dist-info").rename(packages / "numpy-2.4.7.dist-info")
    assert lock_hash("base", choice) != before
    for wrong in ({"python": "python3"}, {"python": "/usr/bin/python3", "modules": ["a"], "image": "/b"}):
        with pytest.raises(ValueError, match="give either"):
            EnvironmentChoice(**wrong)
