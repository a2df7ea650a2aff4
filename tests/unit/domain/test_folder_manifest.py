"""Manifests of folders: what they hold, what they refuse."""

from __future__ import annotations

import os

import pytest

from transect.domain.errors import BadInput
from transect.domain.folder_manifest import check_manifest, read_manifest, write_manifest

NAMES = ["b/2.jpg", "b/1.jpg", "a.b", "a/c", "a-b/x", "ä é.txt", "b/deep/er/file"]


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "set"
    for number, name in enumerate(NAMES):
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(number))
    (place / os.fsdecode(b"\xff\xfe")).write_text("no text in its name")
    (place / ".hidden").write_text("")
    (place / ".git").mkdir()
    (place / ".git" / "config").write_text("")
    return place


def written(folder):
    file = folder.parent / "set.manifest"
    return write_manifest(folder, file), file


def test_it_holds_and_says_the_same_of_all_wherever_it_lies(folder, tmp_path):
    made, file = written(folder)
    assert made.files == len(NAMES) + 1 and made.bytes == sum(range(len(NAMES))) + len("no text in its name")
    assert check_manifest(folder, file) == made.sha256 == read_manifest(file).sha256
    text = file.read_text("ascii")
    assert str(tmp_path) not in text and "%FF%FE" in text and ".hidden" not in text
    moved = folder.rename(tmp_path / "elsewhere")
    inside = moved / "its.manifest"
    assert write_manifest(moved, inside) == made
    assert inside.read_bytes() == file.read_bytes()
    assert check_manifest(moved, inside) == made.sha256


DAMAGE = {
    "missing": lambda folder: [(folder / "b" / name).unlink() for name in ("1.jpg", "2.jpg")],
    "truncated": lambda folder: (folder / "a-b" / "x").write_bytes(b"\0"),
    "longer": lambda folder: (folder / "a-b" / "x").write_bytes(bytes(99)),
    "changed": lambda folder: (folder / "a-b" / "x").write_bytes(b"\0\0\0\1"),
    "additional": lambda folder: [(folder / f"new-{number}").touch() for number in range(5)],
}
SAID = {
    "missing": "2 missing: b/1.jpg, b/2.jpg",
    "truncated": "1 truncated: a-b/x (1 of 4 bytes)",
    "longer": "1 longer: a-b/x (99 of 4 bytes)",
    "changed": "1 changed: a-b/x",
    "additional": "5 additional: new-0, new-1, new-2, …",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_became_of_files_is_counted_and_named(damage, folder):
    _, file = written(folder)
    DAMAGE[damage](folder)
    with pytest.raises(BadInput) as refused:
        check_manifest(folder, file)
    assert str(refused.value).endswith(f"says: {SAID[damage]}")


def test_all_that_is_wrong_is_said_at_once(folder):
    _, file = written(folder)
    for damage in ("missing", "changed", "additional"):
        DAMAGE[damage](folder)
    with pytest.raises(BadInput) as refused:
        check_manifest(folder, file)
    assert all(SAID[damage] in str(refused.value) for damage in ("missing", "changed", "additional"))


def swapped(lines):
    return "".join([lines[0], lines[2], lines[1], *lines[3:]])


EDITS = {
    "another file": (lambda text: "hello\n", "no manifest: expected"),
    "cut": (lambda text: text[: text.rindex("#")], "not whole, or was edited"),
    "a line less": (lambda text: text.replace(text.splitlines(keepends=True)[2], ""), "not whole, or was edited"),
    "another hash": (lambda text: text.replace(text.split()[4], "0" * 64), "not whole, or was edited"),
    "more after it": (lambda text: text + "x", "not whole, or was edited"),
    "another order": (lambda text: swapped(text.splitlines(True)), "not as `transect manifest` writes"),
    "out of the folder": (lambda text: text.replace(" a/c", " ../c"), "not as `transect manifest` writes"),
    "no name": (lambda text: text.replace(" a/c", ""), "line 2: expected 'SHA256 BYTES NAME'"),
    "no text": (lambda text: "\udcff", "no readable manifest"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_manifest_that_is_not_whole_is_refused(edit, folder):
    _, file = written(folder)
    change, words = EDITS[edit]
    file.write_bytes(change(file.read_text("ascii")).encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInput, match=words):
        check_manifest(folder, file)


def test_what_is_no_plain_file_is_refused(folder):
    (folder / "round").symlink_to("..")
    with pytest.raises(BadInput, match="leads round in a circle"):
        written(folder)
    (folder / "round").unlink()
    (folder / "nowhere").symlink_to("gone")
    with pytest.raises(BadInput, match="nowhere: No such file"):
        written(folder)
    (folder / "nowhere").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(BadInput, match="pipe: neither a file nor a folder"):
        written(folder)
    (folder / "empty").mkdir()
    with pytest.raises(BadInput, match="no files in it"):
        write_manifest(folder / "empty", folder.parent / "m")
    assert not (folder.parent / "m").exists() and not (folder.parent / "set.manifest").exists()


def test_links_to_files_and_folders_are_followed(folder, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "image").write_text("far away")
    (folder / "linked").symlink_to(tmp_path / "far")
    made, file = written(folder)
    assert made.files == len(NAMES) + 2
    (tmp_path / "far" / "image").write_text("far, away")
    with pytest.raises(BadInput, match="1 longer: linked/image"):
        check_manifest(folder, file)
