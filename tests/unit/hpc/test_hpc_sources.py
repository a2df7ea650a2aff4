"""Names of the sources of logs: distinct, readable, stable; and the files below them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import plan_study
from transect.domain import checksums, files
from transect.domain.cell import Cell
from transect.domain.checksums import Checksums
from transect.hpc import sources
from transect.hpc.sources import log_facts, log_sources

NAMED = {
    "one": (["a/logs"], ["logs"]),
    "two that end alike": (["a/logs", "b/logs"], ["a-logs", "b-logs"]),
    "only as much as it takes": (["x/a/logs", "x/b/logs", "hpl.out"], ["a-logs", "b-logs", "hpl.out"]),
    "deeper": (["a/x/logs", "b/x/logs"], ["a-x-logs", "b-x-logs"]),
    "the same twice": (["a/logs", "a/../a/logs/", "./a/logs"], ["logs"]),
    "with blanks": (["my logs"], ["my logs"]),
    "its parent": (["a/..", "a"], ["here", "a"]),
    "the folder itself": (["."], ["here"]),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", NAMED)
def test_names_tell_sources_apart(here, name):
    paths, names = NAMED[name]
    found = log_sources([Path(path) for path in paths])
    assert list(found) == names
    assert next(iter(found.values())) == Path(os.path.realpath(paths[0]))


def test_a_link_goes_by_its_own_name_and_leads_to_its_target(here):
    (here / "real").mkdir()
    (here / "link").symlink_to("real")
    (here / "loop").symlink_to("loop")
    assert log_sources([Path("link")]) == {"link": here / "real"}
    # Two ways to the same logs: read once.
    assert log_sources([Path("link"), Path("real")]) == {"link": here / "real"}
    assert list(log_sources([Path("loop"), Path("real")])) == ["loop", "real"]


PART = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12
) | st.sampled_from(["logs", "a", "a-b", "b", "b-logs", "x" * 255])
PATHS = st.lists(st.lists(PART, min_size=1, max_size=4), min_size=1, max_size=6)


@given(PATHS, st.randoms())
def test_names_are_distinct_and_do_not_depend_on_the_order(parts, random):
    root = Path("/no-such-folder-of-logs")
    paths = [root.joinpath(*names) for names in parts]
    found = log_sources(paths)
    assert set(found.values()) == {Path(os.path.realpath(path)) for path in paths}
    shuffled = random.sample(paths, len(paths))
    assert log_sources(shuffled) == found
    for name in found:
        # It fits into a folder's name with the rest of an id.
        assert len(os.fsencode(Cell.of(stage="ingest", source=name).id)) < 255


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    (folder / "deep").mkdir(parents=True)
    (folder / "b.log").write_text("1")
    (folder / "deep" / "a.log").write_text("22")
    (folder / "deep" / "up").symlink_to("..")
    (folder / "gone").symlink_to("nowhere")
    (tmp_path / "link").symlink_to("tree")
    return folder


def test_facts_change_with_what_a_link_leads_to(tree, tmp_path):
    target = tmp_path / "elsewhere" / "x.log"
    target.parent.mkdir()
    target.write_text("1")
    (tree / "linked").symlink_to(target.parent)
    before = log_facts(tree)
    assert log_facts(tree) == before
    assert [fact for fact in before if fact.endswith("unreadable")] == [f"{tree}/gone unreadable"]
    target.write_text("2")
    (changed,) = set(log_facts(tree)) - set(before)
    assert changed == f"{tree}/linked/x.log {hashlib.sha256(b'2').hexdigest()}"


def exchanged(path, content):
    """Write other content of the same size, with the same time stamp."""
    facts = path.stat()
    assert len(content) == facts.st_size
    path.write_text(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def test_content_counts_and_no_time_stamp(tree):
    before = log_facts(tree)
    log = tree / "b.log"
    log.write_text("one")
    with_one = log_facts(tree)
    assert with_one != before
    exchanged(log, "two")
    assert log_facts(tree) != with_one
    exchanged(log, "one")
    os.utime(log, ns=(1, 1))
    assert log_facts(tree) == with_one


def test_large_files_and_large_folders_count_by_size_and_time(tree, monkeypatch):
    log = tree / "b.log"
    log.write_text("one")
    monkeypatch.setattr(sources, "READ_FILE_BYTES", 2)
    before = log_facts(tree)
    assert f"{log} 3 {log.stat().st_mtime_ns}" in before
    exchanged(log, "two")
    assert log_facts(tree) == before
    os.utime(log, ns=(1, 1))
    assert log_facts(tree) != before
    monkeypatch.setattr(sources, "READ_FILE_BYTES", 1000)
    assert f"{log} 3 1" not in log_facts(tree)
    monkeypatch.setattr(sources, "READ_PATH_BYTES", 2)
    assert f"{log} 3 1" in log_facts(tree)


def test_checksums_are_kept_and_see_what_a_time_stamp_hides(tmp_path, monkeypatch):
    log, kept = tmp_path / "b.log", tmp_path / "kept.sqlite"
    log.write_text("one")
    monkeypatch.setattr(files, "YOUNG_NS", 0)
    read = []
    real = checksums.sha256_file
    monkeypatch.setattr(checksums, "sha256_file", lambda path: read.append(path) or real(path))

    def look():
        known = Checksums(kept)
        checksum = known.of(log, log.stat())
        known.save()
        return checksum

    assert look() == look() == hashlib.sha256(b"one").hexdigest()
    assert read == [log]
    exchanged(log, "two")
    assert look() == hashlib.sha256(b"two").hexdigest()
    for damage in ("", "[1]", '{"a": 1}', "{"):
        kept.write_text(damage)
        assert look() == hashlib.sha256(b"two").hexdigest()
    assert len(read) == 6


def test_a_study_reads_logs_of_a_folder_whose_name_is_no_text(here):
    folder = Path(os.fsdecode(os.fsencode(here) + b"/b\xff"))
    folder.mkdir()
    (here / "link").symlink_to(folder)
    (planned,) = plan_study(here, "name: bytes\ningest: {paths: [link]}\n")
    assert planned.id.startswith("link~")
    assert Path(planned.spec["path"]) == folder
