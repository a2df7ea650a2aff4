"""Every file below a folder with its size and SHA-256: what a crate says, and what is checked against it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from transect.domain.errors import BadInput
from transect.domain.files import sha256_file


@dataclass(frozen=True, kw_only=True, slots=True)
class FileFacts:
    """Size in bytes and SHA-256 of one file's content."""

    size: int
    sha256: str


@dataclass(kw_only=True, slots=True)
class Inventory:
    """What is below a folder, by path relative to it, `/` between folders, sorted.

    `files` are regular files. `others` names what has no content of its own here, and why: a link, a
    pipe, a folder or file that cannot be read.
    """

    files: dict[str, FileFacts] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)


def uri_of(name: str) -> str:
    """Return a relative path as a URI reference: whatever bytes it has, it is ASCII and has no scheme.

    >>> uri_of("train/a~1/output.log"), uri_of("a:b c"), uri_of("caf\\xe9\\udcff")
    ('train/a~1/output.log', 'a%3Ab%20c', 'caf%C3%A9%FF')
    """
    return quote(os.fsencode(name), safe="/~")


def name_of(uri: str) -> str:
    """Return the relative path that `uri_of` made a URI of."""
    return os.fsdecode(unquote_to_bytes(uri))


def take_inventory(folder: Path, left_out: Callable[[str], bool] = lambda name: False) -> Inventory:
    """Read every file below `folder` whole, but for those that `left_out` says of their relative path.

    Of a folder that is left out nothing below it is looked at. Links are not followed. Raises BadInput when
    a file changes while it is read, or there is no such folder.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder")
    found = Inventory()
    for name, path, problem in _walk(folder, "", left_out):
        if problem:
            found.others[name] = problem
            continue
        try:
            before = path.lstat()
            checksum = sha256_file(path)
            after = path.lstat()
        except FileNotFoundError:
            raise BadInput(f"{folder}/{name}: went while it was read: is the study running?") from None
        except OSError as error:
            found.others[name] = f"cannot be read: {error.strerror}"
            continue
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise BadInput(f"{folder}/{name}: changed while it was read: is the study running?")
        found.files[name] = FileFacts(size=after.st_size, sha256=checksum)
    return found


def _walk(folder: Path, prefix: str, left_out: Callable[[str], bool]) -> Iterator[tuple[str, Path, str]]:
    """Yield every entry that is no folder, with what keeps it from being read."""
    for path in sorted(folder.iterdir()):
        name = prefix + path.name
        if left_out(name):
            continue
        if path.is_symlink():
            yield name, path, f"a link to {path.readlink()}"
        elif path.is_dir():
            try:
                yield from _walk(path, f"{name}/", left_out)
            except PermissionError as error:
                yield name, path, f"cannot be listed: {error.strerror}"
        else:
            yield name, path, "" if path.is_file() else "no regular file"
