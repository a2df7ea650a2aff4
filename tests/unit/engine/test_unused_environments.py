"""Which environments and images nothing needs any more, and their removal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from factories import plan_study
from transect.cli.clean_environments import bytes_of
from transect.cli.main import app
from transect.domain.errors import BadInput
from transect.domain.paths import StudyPaths
from transect.engine import build_environment, unused_environments
from transect.engine.build_environment import COMPLETE, build
from transect.engine.claim import Claim
from transect.engine.environment_use import note_use, note_uses, notes_of, uses_of
from transect.engine.locks import leased, one_builder
from transect.launch.images import COMPLETE as IMAGE_COMPLETE
from transect.planning import environments
from transect.planning.images import image_folder

NAME = "plain"


class Cache:
    """A cache, and a plug-in folder with one environment, whose installation is one file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.study = StudyPaths(results=folder / "results", study="mine")
        self.edit("")

    def edit(self, requirements: str, plugins: str = "plugins") -> None:
        """Write the definition."""
        source = self.folder / plugins / "envs" / NAME
        source.mkdir(parents=True, exist_ok=True)
        (source / "requirements.txt").write_text(requirements)
        environments._lock_of_files.cache_clear()

    def build(self, study: StudyPaths | None = None) -> Path:
        """Build the environment as it is defined now; return its folder."""
        facts = build(NAME, self.folder / "log")
        assert facts["status"] == "ok", facts
        if study is not None:
            note_use(NAME, facts["lock_hash"], study)
        return Path(facts["python"]).parents[1]

    def old(self, study: StudyPaths | None = None) -> Path:
        """Build one whose definition is another one by then."""
        made = self.build(study)
        self.edit(f"# edited {time.monotonic_ns()}")
        return made

    def clean(self, *options: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["clean", "--environments", *options], env={"COLUMNS": "200"})
        return done.exit_code, done.output

    def unused(self) -> list[str]:
        environments._lock_of_files.cache_clear()
        return sorted(found.folder.name for found in unused_environments.find_unused()[0])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cache]:
    def install(_: str, folder: Path, log: Path) -> dict[str, Any]:
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").symlink_to(sys.executable)
        (folder / "data").write_bytes(b"x" * 5000)
        return {}

    monkeypatch.setenv("TRANSECT_ENVS", str(tmp_path / "cache"))
    monkeypatch.setenv("TRANSECT_PLUGINS", str(tmp_path / "plugins"))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(build_environment, "_install", install)
    yield Cache(tmp_path)
    environments._lock_of_files.cache_clear()


def test_what_no_definition_makes_is_listed_and_goes_when_that_is_asked_for(place: Cache) -> None:
    old, current = place.old(), place.build()
    (place.cache / "wheels").mkdir()
    code, printed = place.clean()
    assert code == 0 and old.name in printed and current.name not in printed
    assert "1 that no definition here makes" in printed and "--yes removes them" in printed
    assert old.is_dir() and notes_of(old).is_dir()
    code, printed = place.clean("--yes")
    assert code == 0 and "removed 1 of 1" in printed
    assert sorted(path.name for path in place.cache.iterdir()) == sorted([current.name, "used", "wheels"])
    assert not notes_of(old).exists() and notes_of(current).is_dir()
    assert place.clean("--yes")[1].startswith("removed 0 of 0")


def test_what_is_not_ours_stays(place: Cache, tmp_path: Path) -> None:
    place.build()
    hash_ = "0123456789abcdef"
    somebodys = place.cache / f"photos-{hash_}"
    somebodys.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / COMPLETE).write_text("{}")
    (place.cache / f"linked-{hash_}").symlink_to(tmp_path / "elsewhere")
    (place.cache / f".{NAME}-{hash_}.17").mkdir()  # an image is made under such a name, an environment is not
    code, printed = place.clean("--yes")
    assert code == 0 and f"left {somebodys.name}: is not known as ours" in printed
    assert somebodys.is_dir() and (tmp_path / "elsewhere" / COMPLETE).exists()
    assert (place.cache / f".{NAME}-{hash_}.17").is_dir() and (place.cache / f"linked-{hash_}").is_symlink()


def test_what_a_running_study_uses_stays_until_it_ends(place: Cache) -> None:
    old = place.old(place.study)
    claim = Claim(place.study.results, "mine")
    claim.take()
    try:
        code, printed = place.clean("--yes")
        assert code == 0 and f"left {old.name}: study 'mine' in {place.study.results} runs: " in printed
        assert (old / COMPLETE).exists()
    finally:
        claim.give_back()
    # Cells that another process runs on, after its Snakemake has gone.
    with leased(place.study, [("train", "n1")]):
        assert place.unused() == []
    assert place.unused() == [old.name]


def test_what_starts_to_be_used_between_the_list_and_its_removal_stays(place: Cache) -> None:
    old = place.old(place.study)
    [found], _ = unused_environments.find_unused()
    claim = Claim(place.study.results, "mine")
    claim.take()
    try:
        assert "runs" in str(unused_environments.remove(found))
    finally:
        claim.give_back()
    with one_builder(old):
        assert "is being built by" in str(unused_environments.remove(found))
    assert (old / COMPLETE).exists()


def test_a_study_that_starts_at_the_last_moment_keeps_its_environment(place: Cache, monkeypatch) -> None:
    old = place.old(place.study)
    [found], _ = unused_environments.find_unused()
    claim, look = Claim(place.study.results, "mine"), unused_environments.why_kept

    def and_start(folder: Path) -> str | None:
        reason = look(folder)
        claim.take()
        return reason

    monkeypatch.setattr(unused_environments, "why_kept", and_start)
    try:
        assert "runs" in str(unused_environments.remove(found))
    finally:
        claim.give_back()
    assert sorted(path.name for path in place.cache.iterdir()) == [old.name, "used"] and (old / COMPLETE).exists()


def test_what_is_noted_by_somebody_and_cannot_be_read_stays(place: Cache) -> None:
    old = place.old()
    (notes_of(old) / "theirs.json").mkdir()
    code, printed = place.clean("--yes")
    assert code == 0 and f"left {old.name}: who uses it is not known: {notes_of(old) / 'theirs.json'}" in printed
    (notes_of(old) / "theirs.json").rmdir()
    (notes_of(old) / "theirs.json").write_text("{")
    assert place.unused() == []


def test_what_belongs_to_another_user_stays(place: Cache, monkeypatch) -> None:
    old = place.old()
    monkeypatch.setattr(unused_environments.os, "geteuid", lambda: old.stat().st_uid + 1)
    assert f"left {old.name}: belongs to another user" in place.clean("--yes")[1]
    assert (old / COMPLETE).exists()


def test_whoever_may_build_in_a_shared_cache_may_note_what_they_use(place: Cache) -> None:
    place.cache.mkdir()
    place.cache.chmod(0o2775)
    notes = notes_of(place.build())
    assert [folder.stat().st_mode & 0o7777 for folder in (notes, notes.parent)] == [0o2775, 0o2775]


def test_while_something_is_built_no_environment_goes(place: Cache) -> None:
    old = place.old()
    with one_builder(place.cache / "other-0123456789abcdef"):
        code, printed = place.clean("--yes")
    assert f"left {old.name}: other-0123456789abcdef is being built by " in printed and code == 0
    half = place.cache / "other-0123456789abcdef"
    half.mkdir()
    with one_builder(half):
        assert f"left {half.name}: is being built by " in place.clean("--yes")[1]
    assert half.is_dir() and old.is_dir()


@pytest.mark.env
@pytest.mark.parametrize("linked", [False, True])
def test_what_a_process_was_started_from_stays(place: Cache, monkeypatch, linked: bool) -> None:
    if linked:  # as where the home folder is one
        (place.folder / "home").symlink_to(place.folder)
        monkeypatch.delenv("TRANSECT_ENVS")
        monkeypatch.setenv("XDG_CACHE_HOME", str(place.folder / "home"))
    old = place.old()
    process = subprocess.Popen([old.resolve() / "bin" / "python", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert f"left {old.name}: process {process.pid} runs from it" in place.clean("--yes")[1]
    finally:
        process.communicate(b"\n")
    assert place.unused() == [old.name]


def test_a_build_that_was_killed_is_ours_by_the_lock_beside_it(place: Cache) -> None:
    place.build()
    half = place.cache / "other-0123456789abcdef"
    half.mkdir()
    assert place.unused() == []
    # Linux gives no process so high a number.
    dead = {"host": os.uname().nodename, "pid": 2**22 + 1, "start": 1}
    half.with_name(f"{half.name}.builder").write_text(json.dumps(dead))
    assert place.unused() == [half.name]
    assert place.clean("--yes")[0] == 0 and not list(place.cache.glob("other*"))


def test_a_removal_that_is_killed_leaves_nothing_that_looks_whole(place: Cache, monkeypatch) -> None:
    old = place.old()
    with monkeypatch.context() as patch:

        def killed(folder: Path) -> None:
            raise KeyboardInterrupt

        patch.setattr(unused_environments, "remove_tree", killed)
        assert place.clean("--yes")[0] == 130
    assert not old.exists()
    [left] = place.unused()
    assert left.startswith(f".{old.name}.removed-")
    assert place.clean("--yes")[0] == 0
    assert sorted(path.name for path in place.cache.iterdir()) == ["used"]


def test_a_definition_beside_a_study_is_known_where_it_was_used(place: Cache, monkeypatch) -> None:
    made = place.build(place.study)
    place.edit("", "others")
    monkeypatch.setenv("TRANSECT_PLUGINS", str(place.folder / "others"))
    place.edit("# another", "others")
    assert place.unused() == []
    place.edit("# edited")
    assert place.unused() == [made.name]


def test_images_are_told_as_environments_are(place: Cache) -> None:
    shared = place.folder / "plugins" / "envs" / "shared"
    shared.mkdir()
    (shared / "image.yaml").write_text("base: host\n")
    place.build()
    image = image_folder(NAME)
    old = image.with_name(f"{NAME}-0123456789abcdef")
    for folder in (image, old, old.with_name(f".{old.name}.12"), old.with_name("somebodys")):
        (folder / "root").mkdir(parents=True)
        (folder / IMAGE_COMPLETE).write_text("{}")
    with one_builder(old):
        assert place.unused() == []
    assert place.unused() == [f".{old.name}.12", old.name]
    assert "removed 2 of 2" in place.clean("--yes")[1]
    assert sorted(path.name for path in image.parent.iterdir()) == sorted([image.name, "somebodys"])


def test_no_image_goes_while_its_definition_cannot_be_read(place: Cache) -> None:
    shared = place.folder / "plugins" / "envs" / "shared"
    shared.mkdir(parents=True)
    (shared / "image.yaml").write_text("base: host\n")
    place.edit("")
    image = image_folder(NAME)
    (image / "root").mkdir(parents=True)
    (image / IMAGE_COMPLETE).write_text("{}")
    (shared / "image.yaml").write_text("base: hos\n")
    done = CliRunner().invoke(app, ["clean", "--environments", "--yes"])
    assert isinstance(done.exception, BadInput) and "image.yaml: key 'base'" in str(done.exception)
    assert (image / IMAGE_COMPLETE).exists()


def test_age_and_size_choose(place: Cache) -> None:
    old = place.old()
    for note in notes_of(old).iterdir():
        os.utime(note, (0, time.time() - 10 * 86400))
    assert old.name not in place.clean("--older-than", "11")[1]
    assert old.name in place.clean("--older-than", "9")[1]
    code, printed = place.clean("--larger-than", "1G", "--yes")
    assert code == 0 and "1 more are younger or smaller" in printed and old.is_dir()
    assert old.name in place.clean("--larger-than", "1K")[1]
    # One that nothing noted counts from when it was made.
    unused_environments.remove_tree(notes_of(old))
    os.utime(old / COMPLETE, (0, 86400))
    assert "not noted; made 1970-01-02" in place.clean()[1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "expected a folder such as results/quick, or --environments"),
        (("--environments",), "no such folder, so there are no environments"),
        (("results", "--environments"), "takes no folder"),
        (("results", "--yes"), "are for --environments"),
        (("--environments", "--yes", "--dry-run"), "expected one of them"),
        (("--environments", "--older-than", "-1"), "expected a number of days"),
        (("--environments", "--larger-than", "big"), "--larger-than big: expected a size such as"),
    ],
)
def test_what_cannot_be_meant_is_named(place: Cache, given: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(app, ["clean", *given])
    assert isinstance(done.exception, BadInput) and message in str(done.exception)


def test_a_study_notes_its_environments_and_what_they_stand_on(place: Cache, tmp_path: Path) -> None:
    (tmp_path / "plugins" / "envs" / NAME / "needs.txt").write_text("base\n")
    environments._lock_of_files.cache_clear()
    plan = plan_study(
        tmp_path,
        "name: mine\ntrain: {repeats: 1, grids: [{workloads: [iris-mlp], frameworks: [numpy], strategies: [single]}]}\n",
    )
    note_uses(plan, {f"{NAME}@podman": "f" * 16})
    noted = {path.name: uses_of(place.cache / path.name) for path in (place.cache / "used").iterdir()}
    locks = {name: environments.lock_hash(name) for name in (NAME, "base")}
    assert set(noted) == {f"{NAME}-{'f' * 16}", *(f"{name}-{lock}" for name, lock in locks.items())}
    for [use] in noted.values():
        assert use.study is not None and use.study.study == "mine"


def test_a_cache_that_cannot_be_written_harms_no_run(place: Cache, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRANSECT_ENVS", str(tmp_path / "file" / "envs"))
    note_use(NAME, "0" * 16, place.study)
    assert uses_of(tmp_path / "file" / "envs" / f"{NAME}-{'0' * 16}") == []


@pytest.mark.parametrize("text", ["", "2X", "-1G", "1e3", "G"])
def test_a_size_that_is_none_is_named(text: str) -> None:
    with pytest.raises(BadInput, match="expected a size"):
        bytes_of(text)
