"""Unpacking archives of others: files and folders below one folder, no links, no more bytes than was stated."""

from __future__ import annotations

import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Literal, Self

from transect.domain.errors import BadInput
from transect.domain.files import free_bytes

_PIECE = 1 << 20
# ILSVRC 2012 has 1.3 million.
_MOST_FILES = 5_000_000
_ENCRYPTED = 1
# Folders in folders.
_DEEPEST = 100
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    gzip.BadGzipFile,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
)


class Broken(BadInput):
    """It is no archive, or not whole."""


def unpack(archive: Path, into: Path, most_bytes: int, *, nested: bool = False) -> int:
    """Unpack a zip or tar file below `into`; return how many files. `nested`: tar files in it become folders of their names.

    Raises BadInput for a member that is no file or folder, leads out of `into`, is there twice, or makes more than
    `most_bytes`, Broken for an archive that is not whole. What was written stays, for the caller to remove.
    """
    budget = _Budget(archive.name, most_bytes)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                _check_room(archive, into, sum(info.file_size for info in opened.infolist()), most_bytes)
                budget.write_all(_zipped(opened, archive.name), into)
        else:
            with archive.open("rb") as stream:
                budget.write_all(_tarred(stream, archive.name, nested), into)
    except _BROKEN as error:
        raise Broken(f"{archive.name}: no whole zip or tar file: {type(error).__name__}: {error}") from None
    return budget.files


def _check_room(archive: Path, into: Path, needed: int, most_bytes: int) -> None:
    if needed > most_bytes:
        raise BadInput(f"{archive.name}: unpacks to {needed} bytes, expected at most {most_bytes}")
    into.mkdir(parents=True, exist_ok=True)
    if needed > (free := free_bytes(into)):
        raise BadInput(f"{into}: has {free} bytes free, expected {needed} for {archive.name}")


def _zipped(opened: zipfile.ZipFile, name: str) -> Iterator[tuple[str, IO[bytes]]]:
    for info in opened.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.is_dir():
            continue
        if kind not in (0, stat.S_IFREG) or info.flag_bits & _ENCRYPTED:
            raise BadInput(
                f"{name}: {info.filename}: expected a plain file, found a link, a device or an encrypted one"
            )
        with opened.open(info) as stream:
            yield info.filename, stream


class _Member(tarfile.TarInfo):
    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        """Raise ReadError for a damaged header behind the first, which `tarfile` takes for the archive's end."""
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.HeaderError as error:
            if type(error).__name__ in ("InvalidHeaderError", "TruncatedHeaderError"):
                raise tarfile.ReadError(str(error)) from None
            raise


def _tarred(
    raw: IO[bytes], name: str, nested: bool, mode: Literal["r:*", "r|*"] = "r:*"
) -> Iterator[tuple[str, IO[bytes]]]:
    # A stream checks no sum of a compressed file; an inner file has none, and cannot be gone back in.
    with tarfile.open(fileobj=raw, mode=mode, tarinfo=_Member) as opened:
        for member in opened:
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                raise BadInput(
                    f"{name}: {member.name}: expected a file or a folder, found a link, a device or the like"
                )
            stream = opened.extractfile(member)
            assert stream is not None
            if nested and member.name.endswith(".tar"):
                folder = member.name.removesuffix(".tar")
                for inner, content in _tarred(stream, member.name, False, "r|*"):
                    # Else `..` in an inner name would lead into a neighbour.
                    _check_path(inner, name)
                    yield f"{folder}/{inner}", content
            else:
                yield member.name, stream
        while opened.fileobj is not None and opened.fileobj.read(_PIECE):
            pass  # the sum stands at the end


def _check_path(path: str, name: str) -> PurePosixPath:
    parts = PurePosixPath(path)
    if (
        parts.is_absolute()
        or ".." in parts.parts
        or not 0 < len(parts.parts) <= _DEEPEST
        or "\0" in path
        or "\\" in path
    ):
        raise BadInput(f"{name}: {path}: expected a path below the archive's own folder")
    return parts


class _Budget:
    """Counts what an archive becomes."""

    def __init__(self, name: str, most_bytes: int) -> None:
        self._name, self._most_bytes = name, most_bytes
        self.files = self._bytes = 0

    def write_all(self, members: Iterator[tuple[str, IO[bytes]]], into: Path) -> None:
        for path, stream in members:
            place = into / _check_path(path, self._name)
            self.files += 1
            if self.files > _MOST_FILES:
                raise BadInput(f"{self._name}: has more than {_MOST_FILES} files")
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as out:
                    while piece := stream.read(_PIECE):
                        self._bytes += len(piece)
                        if self._bytes > self._most_bytes:
                            raise BadInput(f"{self._name}: unpacks to more than {self._most_bytes} bytes")
                        out.write(piece)
            except (FileExistsError, NotADirectoryError):
                raise BadInput(f"{self._name}: {os.fspath(path)}: is there twice") from None
