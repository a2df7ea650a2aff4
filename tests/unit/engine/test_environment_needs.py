"""Environments that stand on others: `needs.txt`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transect.domain.errors import BadInput
from transect.engine import build_environment
from transect.planning import environments

pytestmark = pytest.mark.env

Build = Callable[[str], dict[str, Any]]


@pytest.fixture
def envs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two environments, of which `upper` links to what `lower` has."""
    monkeypatch.setenv("TRANSECT_ENVS", str(tmp_path / "cache"))
    monkeypatch.setenv("TRANSECT_PLUGINS", str(tmp_path / "plugins"))
    folder = tmp_path / "plugins" / "envs"
    for name in ("lower", "upper"):
        (folder / name).mkdir(parents=True)
        (folder / name / "requirements.txt").write_text("")
    (folder / "lower" / "build.sh").write_text('echo content > "$1/file"\n')
    (folder / "upper" / "needs.txt").write_text("# what it links to\nlower\n")
    (folder / "upper" / "build.sh").write_text('ln -s "$TRANSECT_NEEDS_LOWER/file" "$1/file"\n')
    return folder


@pytest.fixture
def build(envs: Path, tmp_path: Path) -> Build:
    def built(name: str) -> dict[str, Any]:
        environments._lock_of_files.cache_clear()
        return build_environment.build(name, tmp_path / f"{name}.log")

    return built


def file_of(facts: dict[str, Any]) -> Path:
    assert facts["status"] == "ok", facts["message"]
    return Path(facts["python"]).parents[1] / "file"


def test_what_is_needed_is_built_first_and_again_when_it_was_edited_or_has_gone(build: Build, envs: Path) -> None:
    file = file_of(build("upper"))
    assert file.read_text() == "content\n"
    shutil.rmtree(file.resolve().parent)
    assert file_of(build("upper")).read_text() == "content\n"
    before = build("upper")["lock_hash"]
    (envs / "lower" / "build.sh").write_text('echo other > "$1/file"\n')
    after = build("upper")
    assert after["lock_hash"] != before and file_of(after).read_text() == "other\n"


def test_what_cannot_be_built_is_the_cause_of_both(build: Build, envs: Path) -> None:
    (envs / "lower" / "build.sh").write_text("echo broken: error: no such thing >&2; exit 3\n")
    facts = build("upper")
    assert facts["status"] == "failed"
    assert "needs environment 'lower'" in facts["message"]
    assert "no such thing" in facts["message"]


@pytest.mark.parametrize(("line", "words"), [("upper", "in a circle: upper -> upper"), ("lowre", "'lowre'")])
def test_a_need_that_cannot_be_is_named(envs: Path, line: str, words: str) -> None:
    (envs / "upper" / "needs.txt").write_text(f"{line}\n")
    with pytest.raises(BadInput, match=words):
        environments.needed_environments("upper")
