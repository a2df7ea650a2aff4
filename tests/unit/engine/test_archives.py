"""Archives of others: what may be in them, and what they may become."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile

import pytest

from transect.domain.errors import BadInput
from transect.engine.fetch import archives
from transect.engine.fetch.archives import unpack


def tarred(*members, mode="w"):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        for name, content, *more in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for key, value in more:
                setattr(member, key, value)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def zipped(*members):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, *mode in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if mode:
                info.external_attr = mode[0] << 16
            archive.writestr(info, content)
    return made.getvalue()


GOOD = (("a/1", b"one"), ("./b/2", b"two"), ("3", b""))
FORMS = {
    "tar": tarred(*GOOD),
    "tar.gz": tarred(*GOOD, mode="w:gz"),
    "tar.xz": tarred(*GOOD, mode="w:xz"),
    "zip": zipped(*GOOD, ("empty/", b"")),
}


@pytest.fixture
def into(tmp_path):
    def make(content, most_bytes=100, **how):
        (tmp_path / "archive").write_bytes(content)
        return unpack(tmp_path / "archive", tmp_path / "into", most_bytes, **how)

    return make


def files(tmp_path):
    place = tmp_path / "into"
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("form", FORMS)
def test_files_and_folders_are_unpacked(form, into, tmp_path):
    assert into(FORMS[form], 6) == 3
    assert files(tmp_path) == {"a/1": b"one", "b/2": b"two", "3": b""}


def test_archives_in_an_archive_become_folders_of_their_names(into, tmp_path):
    inner = {name: tarred((f"{name}_1.JPEG", name.encode())) for name in ("n00000001", "n00000002")}
    outer = tarred(*((f"{name}.tar", content) for name, content in inner.items()))
    assert into(outer, nested=True) == 2
    assert files(tmp_path) == {f"{name}/{name}_1.JPEG": name.encode() for name in inner}


LINK = stat.S_IFLNK | 0o777
# Of gzip the checksum is the last but four bytes.
SUM_IS_WRONG = bytearray(tarred(("a", b"1"), mode="w:gz"))
SUM_IS_WRONG[-5] ^= 1
REFUSED = {
    "above": (tarred(("../out", b"x")), "expected a path below"),
    "above, in zip": (zipped(("a/../../out", b"x")), "expected a path below"),
    "absolute": (tarred(("/tmp/out", b"x")), "expected a path below"),
    "backslashes": (zipped(("..\\out", b"x")), "expected a path below|out"),
    "a link": (tarred(("a", b"", ("type", tarfile.SYMTYPE), ("linkname", "/"))), "a link, a device"),
    "a hard link": (tarred(("a", b"", ("type", tarfile.LNKTYPE), ("linkname", "b"))), "a link, a device"),
    "a device": (tarred(("a", b"", ("type", tarfile.CHRTYPE))), "a link, a device"),
    "a pipe": (tarred(("a", b"", ("type", tarfile.FIFOTYPE))), "a link, a device"),
    "a link, in zip": (zipped(("a", b"/", LINK)), "a link, a device"),
    "twice": (tarred(("a", b"1"), ("a", b"2")), "is there twice"),
    "a file as folder": (tarred(("a", b"1"), ("a/b", b"2")), "is there twice"),
    "a bomb": (tarred(("a", bytes(101)), mode="w:gz"), "unpacks to more than 100 bytes"),
    "a bomb, in zip": (zipped(("a", bytes(60)), ("b", bytes(60))), "unpacks to 120 bytes, expected at most 100"),
    "no archive": (b"hello, hello, hello", "no whole zip or tar file"),
    "an empty one": (b"", "no whole zip or tar file"),
    "one byte of a checksum is wrong": (bytes(SUM_IS_WRONG), "no whole zip or tar file"),
    "cut": (tarred(("a", bytes(90)), mode="w:gz")[:-20], "no whole zip or tar file"),
    "deeper than folders may be": (tarred(("d/" * 2000 + "f", b"1")), "expected a path below"),
    "damaged behind the first": (tarred(("a", b"1"), ("b", b"2")).replace(b"b\0", b"B\0", 1), "no whole zip or tar"),
    "cut, plain": (tarred(("a", b"1" * 90))[:560], "no whole zip or tar file"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_an_archive_must_not_hold_is_refused(what, into, tmp_path):
    content, words = REFUSED[what]
    with pytest.raises(BadInput, match=words):
        into(content)
    assert {path.name for path in tmp_path.iterdir()} <= {"archive", "into"}


def test_an_inner_archive_must_not_lead_into_a_neighbour(into):
    with pytest.raises(BadInput, match="expected a path below"):
        into(tarred(("n1.tar", tarred(("../n2/x", b"x")))), nested=True)


def test_a_zip_that_lies_of_its_size_is_no_bomb(into):
    honest = zipped(("a", bytes(5000)))
    # 5000 bytes are said to be 50, in both places that say it.
    with pytest.raises(BadInput, match="no whole zip"):
        into(honest.replace((5000).to_bytes(4, "little"), (50).to_bytes(4, "little")))


def test_room_and_number_of_files_are_bounded(into, monkeypatch):
    monkeypatch.setattr(archives, "_MOST_FILES", 2)
    with pytest.raises(BadInput, match="more than 2 files"):
        into(FORMS["tar"])
    monkeypatch.setattr(archives, "free_bytes", lambda folder: 5)
    with pytest.raises(BadInput, match="has 5 bytes free, expected 6"):
        into(FORMS["zip"])
