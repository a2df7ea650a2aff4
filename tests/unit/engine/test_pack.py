"""A study's results as one file, and back: what is in it, what is refused, and that nothing is left behind."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkouts import ROOT
from factories import bare_record, train_cell, write_records
from transect.cli.crate import check_crate, write_crate
from transect.cli.places import results_of
from transect.domain.errors import BadInput
from transect.domain.paths import StudyPaths
from transect.engine import pack as packing
from transect.engine.claim import Claim
from transect.engine.locks import leased
from transect.engine.pack import pack, unpack
from transect.engine.verify import verify_records

ODD = os.fsdecode(b"caf\xe9 \x1b[2J.log")


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyPaths:
    """Two cells, a file whose name is no text, one in an empty folder's place, a link out and a cache."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    paths = StudyPaths(results=tmp_path / "results", study="small")
    for workload in ("digits-cnn", "iris-mlp"):
        record = bare_record(train_cell(workload=workload), study="small")
        write_records(paths.folder, record)
        (paths.cell("train", record.cell_id) / ODD).write_bytes(os.urandom(3000))
    (paths.folder / "train" / "linked").symlink_to("/etc/passwd")
    (paths.folder / "empty").touch()
    paths.checksums.write_text("of this machine")
    return paths


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns // 10**6) for path in files}


def test_what_is_packed_is_there_again_elsewhere_and_verifies(paths: StudyPaths, tmp_path: Path) -> None:
    (paths.folder / "train" / "linked").unlink()
    write_crate(paths)
    packed = pack(paths, tmp_path / "out" / "small.tar.gz")
    assert packed.left_out == {} and ".checksums.sqlite" not in packed.files
    again, folder = unpack(tmp_path / "out" / "small.tar.gz", tmp_path / "far" / "away")
    assert again == packed and folder == tmp_path / "far" / "away" / "small"
    before = content(paths.folder)
    del before[".checksums.sqlite"]
    assert content(folder) == before
    sealed = check_crate(folder)
    assert sealed is not None and sealed.holds
    verdicts = list(verify_records(StudyPaths(results=folder.parent, study="small")))
    assert len(verdicts) == 2 and not any(verdict.wrong for verdict in verdicts)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["small"]


def test_links_are_named_and_not_followed(paths: StudyPaths, tmp_path: Path) -> None:
    packed = pack(paths, tmp_path / "small.tar.gz")
    assert packed.left_out == {"train/linked": "a link to /etc/passwd"}
    with tarfile.open(tmp_path / "small.tar.gz") as tar:
        assert all(member.isreg() and (member.uid, member.uname) == (0, "") for member in tar)
    _, folder = unpack(tmp_path / "small.tar.gz", tmp_path / "far")
    assert not (folder / "train" / "linked").is_symlink()


def test_a_study_that_runs_is_not_packed(paths: StudyPaths, tmp_path: Path) -> None:
    claim = Claim(paths.results, "small")
    claim.take()
    try:
        with pytest.raises(BadInput, match=f"runs, and its files still change: .*pid {os.getpid()}"):
            pack(paths, tmp_path / "x.tar.gz")
    finally:
        claim.give_back()
    with leased(paths, [("train", "n1")]), pytest.raises(BadInput, match="still change"):
        pack(paths, tmp_path / "x.tar.gz")
    assert not list(tmp_path.glob("*x.tar.gz*"))


def shorter(file: Path) -> None:
    file.write_bytes(b"")


def other(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


@pytest.mark.parametrize("change", [shorter, other])
def test_what_changes_meanwhile_is_not_packed(
    paths: StudyPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    take = packing.take_inventory

    def and_change(*how: Any) -> Any:
        found = take(*how)
        change(next(paths.folder.glob("train/*/record.json")))
        return found

    monkeypatch.setattr(packing, "take_inventory", and_change)
    with pytest.raises(BadInput, match="changed while it was packed"):
        pack(paths, tmp_path / "x.tar.gz")
    assert not list(tmp_path.glob("*x.tar.gz*"))


def test_a_study_that_runs_behind_a_link_is_not_packed(paths: StudyPaths, tmp_path: Path) -> None:
    real = tmp_path / "scratch" / "small-2026"
    real.parent.mkdir()
    paths.folder.rename(real)
    paths.folder.symlink_to(real)
    claim = Claim(paths.results, "small")
    claim.take()
    try:
        with pytest.raises(BadInput, match=r"study 'small' in .* runs"):
            pack(results_of(str(paths.folder), Path("results")), tmp_path / "x.tar.gz")
    finally:
        claim.give_back()
    with (
        leased(StudyPaths(results=real.parent, study=real.name), [("train", "n1")]),
        pytest.raises(BadInput, match=r"study 'small-2026' in .* runs"),
    ):
        pack(paths, tmp_path / "x.tar.gz")


def test_no_file_is_overwritten_and_none_lies_in_what_it_packs(paths: StudyPaths, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    for name, message in [("there", "is there already"), ("link", "is there already"), ("results/small/x", "lies in")]:
        with pytest.raises(BadInput, match=message):
            pack(paths, tmp_path / name)
    with pytest.raises(BadInput, match="no such folder"):
        pack(StudyPaths(results=tmp_path, study="none"), tmp_path / "x")
    paths.folder.rename(tmp_path / "results" / "my study")
    with pytest.raises(BadInput, match="'my study' is no name of a study"):
        pack(StudyPaths(results=paths.results, study="my study"), tmp_path / "x")
    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.parametrize("kind", ["folder", "empty folder", "file", "link"])
def test_what_is_there_is_never_overwritten(paths: StudyPaths, tmp_path: Path, kind: str) -> None:
    pack(paths, tmp_path / "x.tar.gz")
    place = tmp_path / "far" / "small"
    place.parent.mkdir()
    if kind == "link":
        place.symlink_to("nowhere")
    elif kind == "file":
        place.write_text("mine")
    else:
        place.mkdir()
    if kind == "folder":
        (place / "mine").write_text("mine")
    before = sorted(place.parent.rglob("*"))
    with pytest.raises(BadInput, match="is there already"):
        unpack(tmp_path / "x.tar.gz", place.parent)
    assert sorted(place.parent.rglob("*")) == before


@pytest.mark.parametrize("part", [0, 0.01, 0.3, 0.6, 0.95, 0.999])
def test_half_a_file_is_one_error_and_leaves_nothing(paths: StudyPaths, tmp_path: Path, part: float) -> None:
    pack(paths, tmp_path / "x.tar.gz")
    whole = (tmp_path / "x.tar.gz").read_bytes()
    half = tmp_path / "half.tar.gz"
    half.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(BadInput, match=r"half\.tar\.gz: "):
        unpack(half, tmp_path / "far")
    assert not (tmp_path / "far").exists()
    # One byte of it is another one.
    place = int(part * len(whole))
    half.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
    try:
        _, folder = unpack(half, tmp_path / "far")
    except BadInput:
        assert not (tmp_path / "far").exists()
    else:
        # In the head of gzip's there are bytes that mean nothing.
        assert {name: text for name, (text, _) in content(folder).items()} == {
            name: text for name, (text, _) in content(paths.folder).items() if name != ".checksums.sqlite"
        }


def test_one_that_is_interrupted_leaves_nothing(paths: StudyPaths, tmp_path: Path, monkeypatch) -> None:
    pack(paths, tmp_path / "x.tar.gz")

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(packing.os, "utime", interrupted)
    with pytest.raises(KeyboardInterrupt):
        unpack(tmp_path / "x.tar.gz", tmp_path / "far" / "away")
    assert not (tmp_path / "far").exists()


@pytest.mark.env
@pytest.mark.parametrize(("word", "at"), [("pack", "check"), ("unpack", "os.utime")])
def test_one_that_is_asked_to_end_leaves_nothing(paths: StudyPaths, tmp_path: Path, word: str, at: str) -> None:
    pack(paths, tmp_path / "x")
    given = (
        [paths.folder, "--out", tmp_path / "a/x"] if word == "pack" else [tmp_path / "x", "--results", tmp_path / "a"]
    )
    end = "lambda *_: pack.os.kill(pack.os.getpid(), 15)"
    code = f"from transect.engine import pack; from transect.cli.main import run; pack.{at} = {end}; run()"
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code, word, *map(str, given)], env=variables)
    assert done.returncode == 143 and not list(tmp_path.glob("a/*"))


def listed(*names: str, **changes: Any) -> dict[str, Any]:
    facts = {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    usual = {"pack": 1, "study": "s", "transect": "9", "made": "then", "left_out": {}}
    return usual | {"files": dict.fromkeys(names, facts)} | changes


def file(name: str, text: bytes = b"x", **changes: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(text)
    for key, value in changes.items():
        setattr(info, key, value)
    return info, text


def link(name: str, to: str, kind: bytes) -> tuple[tarfile.TarInfo, bytes]:
    return file(name, b"", type=kind, linkname=to)


HOSTILE = {
    "an absolute path": (listed("/tmp/x"), [file("s//tmp/x")], "names /tmp/x, expected a path below"),
    "a path that leads out": (listed("../x"), [file("s/../x")], r"names \.\./x, expected"),
    "one that does later": (listed("a/../../x"), [file("s/a/../../x")], "expected a path below"),
    "a path with a point": (listed("./x"), [file("s/./x")], "expected a path below"),
    "no name": (listed(""), [file("s/")], "expected a path below"),
    "a file in a file": (listed("a", "a/b"), [file("s/a"), file("s/a/b")], "and a as a file"),
    "a name in two spellings": (listed("a", "%61"), [file("s/a")], "names a file twice"),
    "a link": (listed("a"), [link("s/a", "/etc/passwd", tarfile.SYMTYPE)], "expected a regular file"),
    "a hard link": (listed("a"), [link("s/a", "s/b", tarfile.LNKTYPE)], "expected a regular file"),
    "a device": (listed("a"), [link("s/a", "", tarfile.CHRTYPE)], "expected a regular file"),
    "a folder": (listed("a"), [link("s/a", "", tarfile.DIRTYPE)], "expected a regular file"),
    "a file twice": (listed("a"), [file("s/a"), file("s/a")], "holds s/a twice"),
    "a file that is not named": (listed("a"), [file("s/a"), file("s/b")], "holds s/b, which"),
    "another study's": (listed("a"), [file("t/a")], "holds t/a, which"),
    "one too few": (listed("a", "b"), [file("s/a")], "is not whole: 1 files are missing, such as b"),
    "another length": (listed("a"), [file("s/a", b"xy")], "has 2 bytes, expected 1"),
    "another content": (listed("a"), [file("s/a", b"y")], "its checksum does not hold"),
    "a study's name that leads out": (listed("a", study="../s"), [file("../s/a")], "no name of a study"),
    "a hidden study": (listed("a", study=".transect"), [file(".transect/a")], "no name of a study"),
    "the stamps of environments": (listed("a", study="environments"), [file("environments/a")], "no name of a study"),
    "a later version": (listed("a", pack=2), [file("s/a")], "version 2 of packed files, expected 1"),
    "no list of files": ([1], [file("s/a")], "no readable list"),
    "a size without end": (listed(files={"a": {"size": 1e999, "sha256": ""}}), [file("s/a")], "no readable list"),
    "a size that is none": (listed(files={"a": {"size": "big"}}), [file("s/a")], "no readable list"),
    "no list": (None, [file("s/a")], "does not begin with"),
    "nothing": (None, [], "does not begin with"),
}


def made(path: Path, head: Any, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        if head is not None:
            info, text = file("transect-pack.json", json.dumps(head).encode())
            tar.addfile(info, io.BytesIO(text))
        for info, text in members:
            tar.addfile(info, io.BytesIO(text))
    return path


@pytest.mark.parametrize("name", HOSTILE)
def test_what_pack_does_not_write_is_refused(tmp_path: Path, name: str) -> None:
    head, members, message = HOSTILE[name]
    path = made(tmp_path / "x.tar.gz", head, members)
    with pytest.raises(BadInput, match=message):
        unpack(path, tmp_path / "far")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.tar.gz"]


def test_two_of_them_in_one_file_are_refused(tmp_path: Path) -> None:
    one = made(tmp_path / "x.tar.gz", listed("a"), [file("s/a")]).read_bytes()
    (tmp_path / "x.tar.gz").write_bytes(one + one)
    with pytest.raises(BadInput, match="something else follows the end"):
        unpack(tmp_path / "x.tar.gz", tmp_path / "far")
    assert not (tmp_path / "far").exists()


def test_times_that_no_file_can_have_are_not_kept(tmp_path: Path) -> None:
    path = made(tmp_path / "x.tar.gz", listed("a"), [file("s/a", mtime=1e30)])
    _, folder = unpack(path, tmp_path / "far")
    assert (folder / "a").read_bytes() == b"x"


def test_another_kind_of_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"no tar"))
    for name in ("text", "text.gz", "gone", "."):
        with pytest.raises(BadInput, match=f"{tmp_path / name}: "):
            unpack(tmp_path / name, tmp_path / "far")
    assert not (tmp_path / "far").exists()
