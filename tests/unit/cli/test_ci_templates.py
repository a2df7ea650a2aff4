"""The templates of docs/ci: their own steps, run on a repository with a change.

The step that installs is left out: `transect` and pyperf are those of this working tree and environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.env

INSTALL = "pip install transect pyperf"
SAMPLES = ROOT / "tests" / "data" / "samples"


def templates(name: str) -> tuple[list[str], dict[str, str]]:
    """Return the shell steps of a template and its own variables, inputs at their defaults but for the rounds."""
    text = (ROOT / "docs" / "ci" / f"{name}.yml").read_text()
    if name == "gitlab":
        head, body = YAML(typ="safe").load_all(text)
        for word, given in head["spec"]["inputs"].items():
            body = json.loads(
                json.dumps(body).replace(f"$[[ inputs.{word} ]]", str(4 if word == "rounds" else given["default"]))
            )
        assert "$[[" not in json.dumps(body)
        job = body["benchmark"]
        return job["script"], {key: str(value) for key, value in job["variables"].items()}
    body = YAML(typ="safe").load(text)
    steps = body["jobs"]["benchmark"]["steps"]
    return [step["run"] for step in steps if "run" in step], {key: str(v) for key, v in body["env"].items()} | {
        "ROUNDS": "4"
    }


class Job:
    """A checkout of the change, and what runs a template's steps in it as its runner does."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.summary = name, folder / "repository", folder / "summary"
        (install, self.measure, self.compare), variables = templates(name)
        assert install == INSTALL
        self.folder.mkdir()
        self.git("init", "--quiet")
        self.variables = variables

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return subprocess.check_output(("git", *identity, *arguments), cwd=self.folder, text=True).strip()

    def commit(self, program: str) -> str:
        (self.folder / "benchmark.py").write_text(program)
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", "benchmark")
        return self.git("rev-parse", "HEAD")

    def run(self, step: str, **variables: str) -> tuple[int, str]:
        given = {"GITHUB_STEP_SUMMARY": str(self.summary)} if self.name == "github" else {}
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        env = {**os.environ, **self.variables, **given, **variables, "PATH": path}
        done = subprocess.run(
            ("bash", "-eo", "pipefail", "-c", step), cwd=self.folder, env=env, text=True, capture_output=True
        )
        return done.returncode, done.stdout + done.stderr

    @property
    def samples(self) -> Path:
        return self.folder / "transect-ci"


@pytest.fixture(params=["github", "gitlab"])
def job(request: Any, tmp_path: Path) -> Job:
    return Job(request.param, tmp_path)


def test_a_change_that_makes_a_program_slower_fails_and_one_that_makes_it_faster_passes(job):
    quick, slow = ("pass", "sum(range(30_000_000))")
    base, change = job.commit(quick), job.commit(slow)
    code, said = job.run(job.measure, BASE=base)
    assert code == 0, said
    code, said = job.run(job.compare)
    assert code == 4, said
    assert "<failure" in (job.samples / "junit.xml").read_text()
    assert "benchmark" in (job.samples / "summary.md").read_text()
    if job.name == "github":
        assert job.summary.read_text() == (job.samples / "summary.md").read_text()
    # The same samples the other way round.
    (job.samples / "base.json").rename(job.samples / "kept")
    (job.samples / "head.json").rename(job.samples / "base.json")
    (job.samples / "kept").rename(job.samples / "head.json")
    code, said = job.run(job.compare)
    assert code == 0, said
    assert job.git("rev-parse", "HEAD") == change


def test_a_program_that_fails_fails_the_step_that_measures(job):
    base = job.commit("pass")
    job.commit("raise SystemExit(3)")
    code, said = job.run(job.measure, BASE=base)
    assert code not in (0, 4, 5), said


@pytest.mark.parametrize(
    ("head", "ended"),
    [("pyperf-base.json", 0), ("pyperf-again.json", 0), ("pyperf-slow.json", 4), ("results/benchmarks.json", 2)],
)
def test_only_what_is_firm_or_cannot_be_used_ends_the_job(job, head, ended):
    job.samples.mkdir()
    shutil.copy(SAMPLES / "pyperf-base.json", job.samples / "base.json")
    shutil.copy(SAMPLES / head, job.samples / "head.json")
    code, said = job.run(job.compare)
    assert code == ended, said
