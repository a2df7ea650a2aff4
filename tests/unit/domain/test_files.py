"""What is written can be read by whom the user's umask lets read; what is kept of files holds while they do."""

from __future__ import annotations

import os
import sqlite3
import stat

import pytest

from transect.domain import file_cache, files
from transect.domain.file_cache import FileCache
from transect.domain.files import state_of, while_unchanged, write_atomic, write_if_changed
from transect.domain.paths import StudyPaths
from transect.engine.claim import Claim
from transect.engine.progress import start_progress


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("umask", "file", "folder"),
    [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700), (0o002, 0o664, 0o775), (0o027, 0o640, 0o750)],
)
def test_the_umask_holds_for_what_is_written(tmp_path, umask, file, folder):
    before = os.umask(umask)
    try:
        write_atomic(tmp_path / "one" / "record.json", "{}")
        write_if_changed(tmp_path / "plan.json", "{}")
        claim = Claim(tmp_path / "results", "study")
        claim.take()
        paths = StudyPaths(results=tmp_path, study="two")
        start_progress(paths, {})
        written = ["one/record.json", "plan.json", "results/.transect/study.json", "two/progress.jsonl"]
        assert [mode(tmp_path / name) for name in written] == [file] * 4
        assert mode(tmp_path / "one") == folder
        claim.give_back()
    finally:
        os.umask(before)


def test_a_user_without_a_name_may_claim(tmp_path, monkeypatch):
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4242")

    monkeypatch.setattr("getpass.getuser", nameless)
    claim = Claim(tmp_path, "study")
    claim.take()
    assert f'"user": "{os.getuid()}"' in claim.path.read_text()
    claim.give_back()


def test_what_is_read_is_kept_on_the_way_and_by_the_same_code_only(tmp_path, monkeypatch):
    monkeypatch.setattr(file_cache, "_SAVE_S", -1)
    kept = FileCache(file := tmp_path / "new" / "kept.sqlite", [b"code"])
    kept.put(b"b\xff", "1", "text")
    # Not closed: the process was killed.
    assert [FileCache(file, [b"code"]).get(b"b\xff", state) for state in ("1", "2", "")] == ["text", None, None]
    assert FileCache(file, [b"other"]).get(b"b\xff", "1") is None
    assert list(file.parent.iterdir()) == [file]


def test_a_cache_that_is_damaged_or_out_of_reach_is_done_without(tmp_path):
    def kept() -> list[str | None]:
        cache = FileCache(file, [])
        found = [cache.get(name, "1") for name in (b"a", b"b")]
        cache.put(b"b", "1", "text of b")
        cache.close()
        return found

    file = tmp_path / "kept.sqlite"
    assert kept() == [None, None] and kept() == [None, "text of b"]
    with sqlite3.connect(file) as database:
        database.execute("UPDATE kept SET name = ?", (b"a",))
    assert kept()[0] is None, "the text of another file"
    content = bytearray(file.read_bytes())
    content[18] = 200  # it can be read, and not be written
    file.write_bytes(content)
    kept()
    assert kept() == [None, "text of b"], "made again"
    file = tmp_path / ("n" * 300) / "kept.sqlite"  # nobody can look there
    assert kept() == kept() == [None, None]


def test_what_was_made_of_a_file_is_believed_once_it_has_settled(tmp_path, monkeypatch):
    file, seen = tmp_path / "a", []
    looked = while_unchanged(lambda path: seen.append(path.read_text()) or seen[-1])
    file.write_text("one")
    os.utime(file, (4e9, 4e9))
    assert state_of(file.stat()) == "", "its content may be of any day, and yet somebody just touched it"
    assert looked(file) == looked(file) == "one" and len(seen) == 2
    monkeypatch.setattr(files, "YOUNG_NS", 0)
    assert looked(file) == looked(file) == "one" and len(seen) == 3
