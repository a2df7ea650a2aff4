"""Builders of environments that are killed, disturbed, or find a cache that they cannot write."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from checkouts import ROOT
from transect.domain.errors import BadInput
from transect.engine import build_environment
from transect.planning import environments

pytestmark = pytest.mark.env

NAME = "plain"
# Says who runs it, tells the test that it has begun, and waits until the test lets it go on.
SCRIPT = """
echo $$ >> "$1/writers"
echo > {begun}
read -r < {go}
"""


class Place:
    """A cache, and a plug-in folder with one environment, whose script waits for the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.envs = folder / "plugins" / "envs"
        self.source = self.envs / NAME
        self.source.mkdir(parents=True)
        (self.source / "requirements.txt").write_text("")
        self.begun, self.go = folder / "begun", folder / "go"

    def wait_in_script(self) -> None:
        os.mkfifo(self.begun)
        os.mkfifo(self.go)
        text = SCRIPT.format(begun=self.begun, go=self.go)
        (self.source / "build.sh").write_text(text)

    @property
    def variables(self) -> dict[str, str]:
        plugins = str(self.folder / "plugins")
        return {"TRANSECT_ENVS": str(self.cache), "TRANSECT_PLUGINS": plugins, "PYTHONPATH": str(ROOT / "src")}

    def builder(self, *more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "transect.engine.build_environment", "--name", NAME]
        return subprocess.Popen(
            [*command, "--out", str(self.folder / "stamp.json"), *more], env=os.environ | self.variables
        )

    @property
    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "stamp.json").read_text())
        return found

    def build(self, name: str = NAME) -> dict[str, Any]:
        """Build in this process."""
        environments._lock_of_files.cache_clear()
        return build_environment.build(name, self.folder / "log")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("TRANSECT_ENVS", str(tmp_path / "cache"))
    monkeypatch.setenv("TRANSECT_PLUGINS", str(tmp_path / "plugins"))
    environments._lock_of_files.cache_clear()
    yield Place(tmp_path)
    environments._lock_of_files.cache_clear()


@pytest.fixture
def quick(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place whose installation is one file: what surrounds it is what is tested."""

    def install(_: str, folder: Path, log: Path) -> dict[str, Any]:
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").touch()
        return {}

    monkeypatch.setattr(build_environment, "_install", install)
    return place


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_after_a_killed_builder_the_next_builds_alone_and_another_waits(place, number, capfd):
    place.wait_in_script()
    first = place.builder()
    place.begun.read_text()
    (writers,) = place.cache.glob(f"{NAME}-*/writers")
    script = psutil.Process(int(writers.read_text()))
    first.send_signal(number)
    first.wait()
    second = place.builder()
    place.begun.read_text()
    assert not script.is_running() or script.status() == psutil.STATUS_ZOMBIE
    (writer,) = writers.read_text().split()
    assert int(writer) != script.pid
    third = place.builder()
    # It says that it waits, so that nobody takes it for dead.
    printed = ""
    while " waits: " not in printed:
        printed += capfd.readouterr().err
        assert third.poll() is None, printed
        time.sleep(0.05)
    assert f"pid {second.pid} on " in printed and "its log " in printed, printed
    place.go.write_text("\n")
    assert (second.wait(), third.wait()) == (0, 0)
    assert len(writers.read_text().split()) == 1
    assert place.facts["status"] == "ok"


def test_a_command_that_is_ended_leaves_no_builder_behind(place):
    place.wait_in_script()
    code = f"from transect.cli.elsewhere import _python; _python({NAME!r})"
    command = subprocess.Popen([sys.executable, "-c", code], env=os.environ | place.variables)
    place.begun.read_text()
    [writers] = place.cache.glob(f"{NAME}-*/writers")
    [script] = map(int, writers.read_text().split())
    command.terminate()
    assert command.wait() != 0
    assert not psutil.pid_exists(script)


def test_files_that_are_edited_while_they_are_used_make_no_environment(place):
    place.wait_in_script()
    builder = place.builder()
    place.begun.read_text()
    (place.source / "requirements.txt").write_text("# another one\n")
    place.go.write_text("\n")
    assert builder.wait() == 0
    facts = place.facts
    assert facts["status"] == "failed"
    assert f"{place.source} was edited while" in facts["message"]
    assert not Path(facts["python"]).parents[1].exists()


def test_files_that_were_edited_since_the_plan_make_no_environment(place):
    assert place.builder("--lock", "0123456789abcdef").wait() == 0
    facts = place.facts
    # So that the next plan, which has the new hash, does not take this for an answer.
    assert (facts["status"], facts["lock_hash"]) == ("failed", "0123456789abcdef")
    assert f"{place.source} was edited since" in facts["message"]
    assert not place.cache.exists()


def test_what_was_made_before_an_edit_is_good_for_what_was_planned_before_it(quick):
    before = quick.build()
    (quick.source / "requirements.txt").write_text("# another one\n")
    environments._lock_of_files.cache_clear()
    planned = before["lock_hash"]
    assert environments.lock_hash(NAME) != planned
    assert build_environment.build(NAME, quick.folder / "log", planned) == before


@pytest.mark.parametrize("damaged", ["transect-complete.json", "bin/python"])
def test_a_damaged_environment_is_built_again(quick, damaged):
    folder = Path(quick.build()["python"]).parents[1]
    (folder / damaged).unlink()
    (folder / damaged).symlink_to(folder / "uninstalled")
    (folder / "left").touch()
    assert quick.build()["status"] == "ok"
    assert not (folder / "left").exists() and (folder / "bin/python").exists()


@pytest.mark.parametrize("job", [None, "17"])
def test_no_other_study_measures_on_a_machine_that_builds(quick, monkeypatch, tmp_path, job):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job is not None:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    machine, install, held = tmp_path / "machine.json", build_environment._install, []

    def look(*given: Any) -> dict[str, Any]:
        held.append(machine.exists())
        return install(*given)

    monkeypatch.setattr(build_environment, "_install", look)
    for _ in range(2):
        facts = build_environment.made(NAME, None, tmp_path / "log", machine=machine)
        assert facts["status"] == "ok"
        assert not machine.exists()
    assert held == [job is None]


def test_a_complete_environment_is_used_from_a_cache_that_nobody_can_write(quick, monkeypatch):
    built = quick.build()

    # The tests may run as root, whom no permission stops.
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "cache")

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(os, "open", refuse)
    assert quick.build() == built


@pytest.mark.parametrize("below_a_file", [True, False])
def test_a_cache_that_cannot_be_written_is_a_cause_and_no_traceback(place, below_a_file):
    if below_a_file:
        place.cache.write_text("")
    else:
        # Takes no folder and no file, from root neither.
        place.cache.symlink_to("/proc/self/fd")
    assert place.builder().wait() == 0
    facts = place.facts
    assert facts["status"] == "failed"
    assert "not be built" in facts["message"]
    assert str(place.cache if below_a_file else "/fd") in facts["message"]
    assert "TRANSECT_ENVS" in facts["message"]


@pytest.fixture
def upper(place: Place) -> Place:
    """A place with two environments, of which `upper` links to what `lower` has."""
    for name in ("lower", "upper"):
        (place.envs / name).mkdir()
        (place.envs / name / "requirements.txt").write_text("")
    (place.envs / "lower" / "build.sh").write_text('echo content > "$1/file"\n')
    (place.envs / "upper" / "needs.txt").write_text("# what it links to\nlower\n")
    (place.envs / "upper" / "build.sh").write_text('ln -s "$TRANSECT_NEEDS_LOWER/file" "$1/file"\n')
    return place


def file_of(facts: dict[str, Any]) -> Path:
    assert facts["status"] == "ok", facts["message"]
    return Path(facts["python"]).parents[1] / "file"


def test_what_is_needed_is_built_first_and_again_when_it_was_edited_or_has_gone(upper):
    file = file_of(upper.build("upper"))
    assert file.read_text() == "content\n"
    shutil.rmtree(file.resolve().parent)
    assert file_of(upper.build("upper")).read_text() == "content\n"
    before = upper.build("upper")["lock_hash"]
    (upper.envs / "lower" / "build.sh").write_text('echo other > "$1/file"\n')
    after = upper.build("upper")
    assert after["lock_hash"] != before and file_of(after).read_text() == "other\n"


def test_what_cannot_be_built_is_the_cause_of_both(upper):
    (upper.envs / "lower" / "build.sh").write_text("echo broken: error: no such thing >&2; exit 3\n")
    facts = upper.build("upper")
    assert facts["status"] == "failed"
    assert "needs environment 'lower'" in facts["message"] and "no such thing" in facts["message"]


@pytest.mark.parametrize(("line", "words"), [("upper", "in a circle: upper -> upper"), ("lowre", "'lowre'")])
def test_a_need_that_cannot_be_is_named(upper, line, words):
    (upper.envs / "upper" / "needs.txt").write_text(f"{line}\n")
    with pytest.raises(BadInput, match=words):
        environments.needed_environments("upper")
