"""Tiers, their guard, what a crash costs and the log of a run: pytest on small files with this project's plug-ins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.env

CONFTEST = "pytest_plugins = ['tiers', 'run_log']\n"
MARKS = ["fast", "env", "study", "cluster", "browser", "exhaustive"]
INI = "[pytest]\ntestpaths = .\naddopts = --strict-markers\nmarkers =\n" + "".join(f"    {mark}\n" for mark in MARKS)
FILE = """
import os, subprocess, sys
import pytest

def test_starts_nothing(): pass
def test_starts_a_process(): subprocess.run([sys.executable, "--version"])
def test_asks_a_shell(): os.system("true")
@pytest.fixture(scope="module")
def asked(): os.system("true")
def test_a_fixture_starts_a_process(asked): pass
@pytest.fixture(scope="session")
def shared(): os.system("true")
def test_a_session_has_a_process(shared): pass
@pytest.mark.env
def test_may_start_one(): subprocess.run([sys.executable, "--version"])
def test_takes_an_environment(some_python): subprocess.run([sys.executable, "--version"])
@pytest.mark.exhaustive
def test_is_whole(): pass
@pytest.fixture
def some_python(): return sys.executable
"""
CRASH = "import os\ndef test_before(): pass\ndef test_ends_its_worker(): os._exit(1)\ndef test_after(): pass\n"


def run(folder: Path, *arguments: str, **files: str) -> tuple[int, str, list[dict[str, str]]]:
    """Run pytest on files; return its exit code, what it said and the lines of its log."""
    for name, text in {"conftest": CONFTEST, **files}.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "pytest.ini").write_text(INI)
    path = os.pathsep.join([str(ROOT / "tests" / "support"), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    log = folder / "build" / "tests" / "last-run.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return done.returncode, done.stdout + done.stderr, [json.loads(line) for line in lines]


def test_a_fast_test_that_starts_a_process_fails_and_each_has_one_tier(tmp_path: Path) -> None:
    code, said, lines = run(tmp_path, test_some=FILE)
    *tests, end = lines
    found = {test["id"].split("::")[1]: (test["tier"], test["outcome"]) for test in tests}
    assert code == 1, said
    assert found == {
        "test_starts_nothing": ("fast", "passed"),
        "test_starts_a_process": ("fast", "failed"),
        "test_asks_a_shell": ("fast", "failed"),
        "test_a_fixture_starts_a_process": ("fast", "failed"),
        "test_a_session_has_a_process": ("fast", "passed"),
        "test_may_start_one": ("env", "passed"),
        "test_takes_an_environment": ("env", "passed"),
    }
    assert end == {"whole": True, "missed": 0, "unread": 0}


def test_two_tiers_are_refused(tmp_path: Path) -> None:
    text = "import pytest\n@pytest.mark.fast\n@pytest.mark.env\ndef test_both(): pass\n"
    code, said, _ = run(tmp_path, test_some=text)
    assert code == 4 and "test_both" in said and "in one tier" in said


def test_a_worker_that_dies_costs_one_test(tmp_path: Path) -> None:
    code, said, lines = run(tmp_path, "-n", "2", "--dist", "loadscope", test_a=CRASH, test_b=CRASH)
    assert code == 1, said
    outcomes = [(test["id"].split("::")[-1], test["outcome"]) for test in lines if "id" in test]
    ends = [("test_after", "passed"), ("test_before", "passed"), ("test_ends_its_worker", "lost")]
    assert sorted(outcomes) == sorted(2 * ends)
    assert lines[-1] == {"whole": True, "missed": 0, "unread": 0}
    assert said.count("crashed while running") >= 2
