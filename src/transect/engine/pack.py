"""A study's results as one file with the checksum of everything in it, and back.

The file is a compressed tar. Its first member, `transect-pack.json`, names every other one with size and SHA-256. All these are
regular files below `STUDY/`: whatever else is met in one is refused. Modes and owners are not kept, times are.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import secrets
import shutil
import tarfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from transect import __version__
from transect.domain.errors import BadInput
from transect.domain.files import free_bytes, writing
from transect.domain.inventory import FileFacts, Inventory, name_of, take_inventory, uri_of
from transect.domain.paths import StudyPaths
from transect.domain.study import Study
from transect.engine.locks import who_runs

_LIST, _VERSION = "transect-pack.json", 1
_MOST_LIST_BYTES = 1 << 28
_PIECE = 1 << 20
_LATEST = 1 << 33  # in seconds since 1970, which every file system can write
# Caches of ours, which hold for this machine alone.
_LEFT_OUT = (".checksums.sqlite", ".checksums.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """What a packed file says of itself. `left_out`: what was in the folder and is no file, such as a link."""

    study: str
    version: str
    made: str
    files: dict[str, FileFacts]
    left_out: dict[str, str]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(facts.size for facts in self.files.values())


def pack(paths: StudyPaths, out: Path) -> Packed:
    """Write all files of a study's folder into `out`, read it again, and give it its name only then.

    Links are not followed: they are left out. Raises BadInput while the study runs, where `out` is there already or lies in
    the folder, and for what changes meanwhile or cannot be read.
    """
    folder = paths.folder.resolve()
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder: no results of this study")
    if os.path.lexists(out):
        raise BadInput(f"{out}: is there already: give another name with --out")
    if out.resolve().is_relative_to(folder):
        raise BadInput(f"{out}: lies in the folder that is packed: give another one with --out")
    _refuse_running(paths)
    found = take_inventory(folder, _LEFT_OUT.__contains__)
    if unread := [f"{name}: {what}" for name, what in found.others.items() if what.startswith("cannot be ")]:
        raise BadInput(*(f"{folder}/{line}" for line in unread))
    if not found.files:
        raise BadInput(f"{folder}: no files there to pack")
    _checked_study(folder, paths.study)
    with writing(out) as stream:
        _write(stream, folder, paths.study, found)
        _refuse_running(paths)
        stream.flush()
        try:
            return check(Path(stream.name))
        except BadInput as error:
            raise BadInput(f"{folder}: changed while it was packed: {error}") from None


def _checked_study(where: Path, name: object) -> str:
    try:
        return Study.model_validate({"name": name}).name
    except ValueError:
        raise BadInput(f"{where}: {name!r} is no name of a study: expected letters, digits and . _ -") from None


def _refuse_running(paths: StudyPaths) -> None:
    real = paths.folder.resolve()
    # Where the folder is a link, its jobs know the other end alone.
    for place in (paths, StudyPaths(results=real.parent, study=real.name)):
        if (holder := who_runs(place)) is not None:
            raise BadInput(f"study '{place.study}' in {place.results} runs, and its files still change: {holder}")


def _write(stream: IO[bytes], folder: Path, study: str, found: Inventory) -> None:
    content = {
        "pack": _VERSION,
        "study": study,
        "transect": __version__,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "files": {uri_of(name): {"size": f.size, "sha256": f.sha256} for name, f in found.files.items()},
        "left_out": {uri_of(name): uri_of(what) for name, what in found.others.items()},
    }
    raw = json.dumps(content, indent=0).encode()
    # Its own name would stand in it.
    with (
        gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        head = tarfile.TarInfo(_LIST)
        head.size, head.mtime = len(raw), int(time.time())
        tar.addfile(head, io.BytesIO(raw))
        for name, facts in found.files.items():
            member = tarfile.TarInfo(f"{study}/{name}")
            with (folder / name).open("rb") as file:
                member.size, member.mtime = facts.size, os.fstat(file.fileno()).st_mtime
                try:
                    tar.addfile(member, file)
                except OSError as error:
                    if error.errno is not None:
                        raise
                    # So tarfile says that it is shorter now; any other change is found when all is read again.
                    raise BadInput(f"{folder}/{name}: changed while it was packed") from None


def check(file: Path) -> Packed:
    """Read a packed file whole and hold it to its checksums. Raises BadInput for the first thing that is wrong with it."""
    with _opened(file) as (packed, members):
        for _, pieces in members:
            for _ in pieces:
                pass
    return packed


def unpack(file: Path, results: Path) -> tuple[Packed, Path]:
    """Make the folder `results/STUDY` of a packed file; return what it says of itself, and the folder.

    It is checked whole before anything is written, and again while it is. Raises BadInput where the study's folder is there
    already, or is just being made, and for a file that is not whole or holds what `pack` does not write.
    """
    packed = check(file)
    paths = StudyPaths(results=results, study=packed.study)
    if os.path.lexists(paths.folder):
        raise BadInput(f"{paths.folder}: is there already: move it away, or use another folder with --results")
    _refuse_running(paths)
    made = [folder for folder in (results, *results.parents) if not folder.exists()]
    aside = results / f".{packed.study}.unpacked-{secrets.token_hex(4)}"
    try:
        aside.mkdir(parents=True)
        if packed.bytes > (free := free_bytes(aside)):
            raise BadInput(f"{results}: has {free} bytes free, expected {packed.bytes} for {file}")
        with _opened(file) as (again, members):
            if again != packed:
                raise BadInput(f"{file}: was changed while it was read")
            for member, pieces in members:
                place = aside / member.name.partition("/")[2]
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as stream:
                    stream.writelines(pieces)
                if 0 <= member.mtime < _LATEST:
                    os.utime(place, (member.mtime, member.mtime))
        if os.path.lexists(paths.folder):
            raise BadInput(f"{paths.folder}: was made meanwhile: nothing was unpacked")
        aside.rename(paths.folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        for folder in made:
            if not folder.is_dir() or any(folder.iterdir()):
                break
            folder.rmdir()
        raise
    return packed, paths.folder


_Members = Iterator[tuple[tarfile.TarInfo, Iterator[bytes]]]


@contextmanager
def _opened(file: Path) -> Iterator[tuple[Packed, _Members]]:
    """Give what a packed file says of itself and its members, whose content is checked while it is read to its end.

    Raises BadInput for whatever is wrong with it.
    """
    try:
        raw = file.open("rb")
    except OSError as error:
        raise BadInput(f"{file}: cannot be read: {error.strerror}") from None
    try:
        with raw, gzip.GzipFile(fileobj=raw) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            packed = _list(file, tar)
            yield packed, _members(file, tar, packed)
            while piece := stream.read(_PIECE):  # to the checksum at its end
                if piece.strip(b"\0"):
                    raise BadInput(f"{file}: something else follows the end of what `transect pack` wrote")
    except (gzip.BadGzipFile, EOFError, zlib.error, tarfile.TarError) as error:
        raise BadInput(f"{file}: no whole file of `transect pack`: {error}") from None


def _list(file: Path, tar: tarfile.TarFile) -> Packed:
    member = tar.next()
    if member is None or member.name != _LIST or not member.isreg() or member.size > _MOST_LIST_BYTES:
        raise BadInput(f"{file}: no file of `transect pack`: it does not begin with {_LIST}")
    stream = tar.extractfile(member)
    assert stream is not None
    try:
        content: dict[str, Any] = json.loads(stream.read())
        if (version := content["pack"]) != _VERSION:
            raise BadInput(
                f"{file}: is of version {version} of packed files, expected {_VERSION}: take a newer transect"
            )
        listed = content["files"]
        files = {name_of(uri): FileFacts(size=int(f["size"]), sha256=str(f["sha256"])) for uri, f in listed.items()}
        packed = Packed(
            study=_checked_study(file, content["study"]),
            version=str(content["transect"]),
            made=str(content["made"]),
            files=files,
            left_out={name_of(uri): name_of(what) for uri, what in content["left_out"].items()},
        )
    except BadInput:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise BadInput(f"{file}: {_LIST}: no readable list: {type(error).__name__}: {error}") from None
    for name in files:
        path = PurePosixPath(name)
        if str(path) != name or path.is_absolute() or "\0" in name or ".." in path.parts:
            raise BadInput(f"{file}: names {name}, expected a path below the study's folder")
        if inside := next((str(above) for above in path.parents if str(above) in files), None):
            raise BadInput(f"{file}: names {name}, and {inside} as a file")
    if len(files) != len(listed):
        raise BadInput(f"{file}: {_LIST} names a file twice")
    return packed


def _members(file: Path, tar: tarfile.TarFile, packed: Packed) -> _Members:
    missing = dict(packed.files)
    while (member := tar.next()) is not None:
        study, _, name = member.name.partition("/")
        if study != packed.study or name not in packed.files:
            raise BadInput(f"{file}: holds {member.name}, which {_LIST} does not name")
        if not member.isreg() or member.issparse():
            raise BadInput(f"{file}: {member.name}: expected a regular file, found a link, a device or the like")
        if (facts := missing.pop(name, None)) is None:
            raise BadInput(f"{file}: holds {member.name} twice")
        if member.size != facts.size:
            raise BadInput(f"{file}: {member.name}: has {member.size} bytes, expected {facts.size}")
        yield member, _pieces(file, tar, member, facts)
    if missing:
        raise BadInput(f"{file}: is not whole: {len(missing)} files are missing, such as {next(iter(missing))}")


def _pieces(file: Path, tar: tarfile.TarFile, member: tarfile.TarInfo, facts: FileFacts) -> Iterator[bytes]:
    stream, total = tar.extractfile(member), hashlib.sha256()
    assert stream is not None
    while piece := stream.read(_PIECE):
        total.update(piece)
        yield piece
    if total.hexdigest() != facts.sha256:
        raise BadInput(f"{file}: {member.name}: its checksum does not hold")
