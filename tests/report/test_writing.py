"""Exports beside one another: what is stale goes, what is somebody's stays, what is older is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from factories import make_record, train_cell, write_records
from transect.domain.errors import BadInput
from transect.report.formats import Contents
from transect.report.made import Made, make_all
from transect.report.writing import EXPORTS, older_exports, put, write_formats


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != EXPORTS
    }


def write(folder: Path, state: str = "s", place: str = "mine/", **files: str) -> object:
    contents = Contents(files={name.replace("__", "/"): text.encode() for name, text in files.items()})
    return put(folder, "mine", place, contents, state=state)


def test_what_is_no_longer_made_goes_with_its_folder(tmp_path: Path) -> None:
    write(tmp_path, a="1", sub__b="2")
    write(tmp_path, a="3")
    assert files_of(tmp_path) == {"mine/a": b"3"}
    assert not (tmp_path / "mine/sub").exists()


def test_what_somebody_wrote_or_changed_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/a").write_text("my own")
    with pytest.raises(BadInput, match="mine/a would be overwritten"):
        write(tmp_path, a="1", b="2")
    assert files_of(tmp_path) == {"mine/a": b"my own"}, "nothing of it was written"
    (tmp_path / "mine/a").unlink()
    write(tmp_path, a="1", b="2")
    (tmp_path / "mine/a").write_text("edited")
    with pytest.raises(BadInput, match="changed since"):
        write(tmp_path, a="3", b="4")
    assert files_of(tmp_path) == {"mine/a": b"edited", "mine/b": b"2"}


def test_a_changed_file_that_is_no_longer_made_is_refused_and_stays(tmp_path: Path) -> None:
    write(tmp_path, a="1", b="2")
    (tmp_path / "mine/b").write_text("edited")
    (tmp_path / "mine/c").write_text("foreign")
    with pytest.raises(BadInput, match="mine/b would be"):
        write(tmp_path, a="1")
    (tmp_path / "mine/b").unlink()
    write(tmp_path, a="1")
    assert files_of(tmp_path) == {"mine/a": b"1", "mine/c": b"foreign"}


def test_an_export_that_was_ended_half_way_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, a="1", b="1")
    from transect.report import writing

    real = writing.write_atomic

    def ends(path: Path, data: bytes | str) -> None:
        if path.name == "b":
            raise OSError("no space left")
        real(path, data)

    monkeypatch.setattr(writing, "write_atomic", ends)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path, a="2", b="2")
    monkeypatch.undo()
    write(tmp_path, a="3", b="3")
    assert files_of(tmp_path) == {"mine/a": b"3", "mine/b": b"3"}


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"mine": 3}', '{"mine": {"state": "", "files": {"../x": ["1"]}}}'])
def test_a_damaged_list_removes_nothing(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "study"
    (tmp_path / "x").write_text("outside")
    write(folder, a="1")
    (folder / EXPORTS).write_text(damage)
    write(folder, a="1")
    assert (tmp_path / "x").read_text() == "outside"
    assert files_of(folder) == {"mine/a": b"1"}


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x"])
def test_a_format_cannot_leave_its_place(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="outside"):
        put(tmp_path, "mine", "mine/", Contents(files={name: b""}), state="")


def made_of(folder: Path, repeats: int) -> Made:
    # Records that are there stay as they are: they are no older than they were.
    there = len(list(folder.glob("train/*/record.json")))
    for repeat in range(there, repeats):
        write_records(folder, make_record(train_cell(repeat=repeat), {"step_time": 1e-3}))
    return make_all(folder, title="x", only=("methods",))


def test_exports_of_older_records_are_named_until_they_are_made_again(tmp_path: Path) -> None:
    first = made_of(tmp_path, 1)
    told = write_formats(first, tmp_path, ["markdown", "mlperf-logs"])
    assert [one.format for one in told] == ["figures", "markdown", "mlperf-logs"], "markdown needs the figures"
    assert older_exports(first, tmp_path) == []
    assert any("no quality" in sentence for sentence in told[2].left_out)
    second = made_of(tmp_path, 2)
    assert older_exports(second, tmp_path) == ["markdown"], "of the others there is no file"
    write_formats(second, tmp_path, ["markdown"])
    assert older_exports(second, tmp_path) == []


def test_an_unknown_format_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="did you mean 'markdown'"):
        write_formats(made_of(tmp_path, 1), tmp_path, ["html", "markdwn"])
    assert not (tmp_path / "report.html").exists(), "nothing is written before all names are known"
