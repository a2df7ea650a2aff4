"""The manifest of a folder: name, bytes and SHA-256 of every file in it, and one hash over all.

A text file that may be committed and shared: paths are relative to the folder, percent-encoded, so that it is ASCII whatever
bytes a name has. Neither writing nor checking one keeps more than one folder's names in memory. What begins with a dot is no
part of it, links are followed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from transect.domain.errors import BadInput
from transect.domain.files import writing
from transect.domain.terminal import printable

_HEAD = "# transect manifest 1"
_SHOWN = 3


class Differs(BadInput):
    """A folder is not what its manifest says: a check that does not hold, not a mistake of who asks."""

    exit_code = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """What a manifest says of all files together; `sha256` is over its lines."""

    files: int
    bytes: int
    sha256: str

    @property
    def text(self) -> str:
        """Its last line."""
        return f"# {self.files} files, {self.bytes} bytes, sha256 {self.sha256}"


@dataclass(frozen=True, slots=True)
class _Line:
    name: bytes
    size: int
    sha256: str

    @property
    def text(self) -> str:
        return f"{self.sha256} {self.size} {quote(self.name, safe='/~')}"

    @property
    def key(self) -> list[bytes]:
        return self.name.split(b"/")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content, read in pieces; nothing of it is kept."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_manifest(folder: Path, file: Path, seen: Callable[[int], None] = lambda count: None) -> Manifest:
    """Write a folder's manifest to `file`, which may stand in it; `seen` is told how many files are done.

    Raises BadInput where a file cannot be read, or there is none.
    """
    total = _Total()
    with writing(file) as stream:
        stream.write(f"{_HEAD}\n".encode())
        for name, path in _files(folder, file):
            try:
                line = _Line(name, path.stat().st_size, sha256_of(path))
            except OSError as error:
                raise BadInput(f"{path}: {error.strerror}") from None
            total.add(line)
            stream.write(f"{line.text}\n".encode())
            seen(total.files)
        if not total.files:
            raise BadInput(f"{folder}: no files in it")
        made = total.manifest
        stream.write(f"{made.text}\n".encode())
    return made


def read_manifest(file: Path) -> Manifest:
    """Return what a manifest says of all files, having read all of it. Raises BadInput for one that is not whole."""
    total = _Total()
    for line in _lines(file, total):
        total.add(line)
    return total.manifest


def check_manifest(folder: Path, file: Path) -> str:
    """Hold a folder to its manifest; return the hash over all.

    Raises Differs, which counts what is missing, additional, of another size or changed, and names the first few of each; BadInput for
    a manifest that is not whole.
    """
    wrong: dict[str, _Wrong] = {}

    def note(what: str, name: bytes, more: str = "") -> None:
        wrong.setdefault(what, _Wrong()).add(f"{printable(os.fsdecode(name))}{more}")

    total = _Total()
    there = _files(folder, file)
    have = next(there, None)
    for line in _lines(file, total):
        total.add(line)
        while have is not None and have[0].split(b"/") < line.key:
            note("additional", have[0])
            have = next(there, None)
        if have is None or have[0] != line.name:
            note("missing", line.name)
            continue
        try:
            size = have[1].stat().st_size
            if size != line.size:
                what = "truncated" if size < line.size else "longer"
                note(what, line.name, f" ({size} of {line.size} bytes)")
            elif sha256_of(have[1]) != line.sha256:
                note("changed", line.name)
        except OSError as error:
            note("unreadable", line.name, f" ({error.strerror})")
        have = next(there, None)
    while have is not None:
        note("additional", have[0])
        have = next(there, None)
    if wrong:
        rows = "; ".join(f"{found.count} {what}: {found.text}" for what, found in wrong.items())
        raise Differs(f"{printable(str(folder))}: is not what {printable(str(file))} says: {rows}")
    return total.manifest.sha256


class _Wrong:
    """How many files, and the first few."""

    def __init__(self) -> None:
        self.count = 0
        self._names: list[str] = []

    def add(self, name: str) -> None:
        self.count += 1
        self._names += [name] if self.count <= _SHOWN else []

    @property
    def text(self) -> str:
        return ", ".join([*self._names, "…"] if self.count > _SHOWN else self._names)


class _Total:
    def __init__(self) -> None:
        self.files = self.bytes = 0
        self._hash = hashlib.sha256()

    def add(self, line: _Line) -> None:
        self.files += 1
        self.bytes += line.size
        self._hash.update(f"{line.text}\n".encode())

    @property
    def manifest(self) -> Manifest:
        return Manifest(files=self.files, bytes=self.bytes, sha256=self._hash.hexdigest())


def _lines(file: Path, total: _Total) -> Iterator[_Line]:
    """Yield a manifest's lines in order; at its end `total` must be what its last line says. Raises BadInput."""
    where = printable(str(file))
    before: list[bytes] = []
    try:
        with file.open(encoding="ascii") as stream:
            if stream.readline().rstrip("\n") != _HEAD:
                raise BadInput(
                    f"{where}: no manifest: expected '{_HEAD}' as its first line, as `transect manifest` writes"
                )
            for number, text in enumerate(stream, 2):
                if text.startswith("#"):
                    if text.rstrip("\n") != total.manifest.text or stream.read(1):
                        break
                    return
                try:
                    sha256, size, name = text.split()
                    line = _Line(unquote_to_bytes(name), int(size), sha256)
                except ValueError:
                    raise BadInput(f"{where}: line {number}: expected 'SHA256 BYTES NAME'") from None
                parts = line.key
                if line.text != text.rstrip("\n") or parts <= before or not _is_below(parts):
                    raise BadInput(
                        f"{where}: line {number}: {name}: not as `transect manifest` writes, in order of names"
                    )
                before = parts
                yield line
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{where}: no readable manifest: {getattr(error, 'strerror', None) or error}") from None
    raise BadInput(f"{where}: is not whole, or was edited: its last line does not fit the others")


def _is_below(parts: list[bytes]) -> bool:
    return not any(part in (b"", b".", b"..") or b"\0" in part for part in parts)


def _files(folder: Path, but: Path) -> Iterator[tuple[bytes, Path]]:
    """Yield relative name and path of every visible file but one, folder by folder, sorted by the bytes of their names."""
    left_out = but.resolve()

    def walk(at: Path, below: bytes, above: tuple[tuple[int, int], ...]) -> Iterator[tuple[bytes, Path]]:
        facts = at.stat()
        here = (facts.st_dev, facts.st_ino)
        if here in above:
            raise BadInput(f"{printable(str(at))}: a link that leads round in a circle")
        with os.scandir(at) as scanned:
            names = sorted(os.fsencode(entry.name) for entry in scanned if not entry.name.startswith("."))
        for name in names:
            path = at / os.fsdecode(name)
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                yield from walk(path, below + name + b"/", (*above, here))
            elif not stat.S_ISREG(mode):
                raise BadInput(f"{printable(str(path))}: neither a file nor a folder")
            elif path.name != left_out.name or path.resolve() != left_out:
                yield below + name, path

    try:
        yield from walk(folder, b"", ())
    except OSError as error:
        raise BadInput(f"{printable(str(error.filename))}: {error.strerror}") from None
