"""Names for the folders and files that a study reads logs from, and the files below them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from transect.domain.errors import BadInput
from transect.domain.files import sha256_file

# What is larger counts by size and time stamp, so that planning does not read it all.
READ_FILE_BYTES = 64 << 20
READ_PATH_BYTES = 8 << 30

# With the rest of an id it has to fit into the name of a folder, 255 bytes.
_MAX_LENGTH = 120
_NAMELESS = "logs"


def _text(part: str) -> str:
    """Return a part of a path as text that can be encoded, whatever bytes it has."""
    return os.fsencode(part).decode("utf-8", "replace")


def _name(parts: Sequence[str], depth: int) -> str:
    return "-".join(parts[-depth:]) if parts else _NAMELESS


def _marked(name: str, path: str) -> str:
    """Return a name with digits of the whole path, for what its parts do not tell apart."""
    mark = hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
    return f"{name.encode()[:_MAX_LENGTH].decode(errors='ignore')}-{mark}"


def log_sources(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the real path of each source of logs, by a name that no other one has.

    A name is the last part of the path as it is given: `.` goes by its folder's name, a symbolic
    link by its own. Of paths that end alike it is as many last parts as tell them apart, joined
    by `-`; where no number of them does, it ends in digits of a hash of the path. The order of paths
    changes no name. Paths to the same file or folder are one, named by the first. Nothing has to
    be there.

    >>> list(log_sources([Path("/x/a/logs"), Path("/x/b/logs"), Path("/x/b/hpl.out")]))
    ['a-logs', 'b-logs', 'hpl.out']
    """
    given: dict[str, str] = {}
    for path in paths:
        # Not resolved: a link keeps its own name.
        given.setdefault(os.path.realpath(path), os.path.normpath(Path.cwd() / path))
    parts = {real: [_text(part) for part in Path(path).parts[1:]] for real, path in given.items()}
    depth = dict.fromkeys(given, 1)
    while True:
        names = {real: _name(parts[real], depth[real]) for real in given}
        count = Counter(names.values())
        alike = [real for real in given if count[names[real]] > 1]
        longer = [real for real in alike if depth[real] < len(parts[real])]
        if not longer:
            break
        for real in longer:
            depth[real] += 1
    for real, name in names.items():
        if real in alike or len(name.encode()) > _MAX_LENGTH:
            names[real] = _marked(name, given[real])
    return {names[real]: Path(real) for real in given}


def find_files(paths: Sequence[Path]) -> list[Path]:
    """List the files under `paths`, folders recursively and sorted, each file once.

    Symbolic links are followed; a folder that was seen before is not entered again. Raises
    BadInput naming a path that does not exist.
    """
    found: dict[str, Path] = {}
    folders: set[tuple[int, int]] = set()
    for path in paths:
        if not os.path.lexists(path):
            raise BadInput(f"{path}: no such file or folder; expected a benchmark log or a folder of them")
        for file in _walk(path, folders):
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def _walk(path: Path, folders: set[tuple[int, int]]) -> Iterator[Path]:
    try:
        if not path.is_dir():
            yield path
            return
        facts = path.stat()
        key = (facts.st_dev, facts.st_ino)
        if key in folders:
            return
        folders.add(key)
        inside = sorted(path.iterdir())
    except OSError:
        yield path  # reading it fails again, and that is reported
        return
    for entry in inside:
        yield from _walk(entry, folders)


def log_facts(
    path: Path, checksum: Callable[[Path, os.stat_result], str] = lambda file, _: sha256_file(file)
) -> list[str]:
    """Return name and checksum of every file below `path`: logs, or a data set.

    Of the files that `find_files` gives, so that what is read is also what is looked at. There may be
    too much to read it all: a file above `READ_FILE_BYTES` stands with its size and time stamp, and
    so do all of a path that holds more than `READ_PATH_BYTES`. Where one cannot be asked its name stands
    with the word `unreadable`.
    """
    found: list[tuple[Path, os.stat_result | None]] = []
    for file in find_files([path]):
        try:
            found.append((file, file.stat()))
        except OSError:
            found.append((file, None))
    read = sum(facts.st_size for _, facts in found if facts is not None) <= READ_PATH_BYTES
    return [f"{_text(str(file))} {_fact(file, facts, read, checksum)}" for file, facts in found]


def _fact(file: Path, facts: os.stat_result | None, read: bool, checksum: Callable[[Path, os.stat_result], str]) -> str:
    try:
        if facts is None:
            return "unreadable"
        if read and stat.S_ISREG(facts.st_mode) and facts.st_size <= READ_FILE_BYTES:
            return checksum(file, facts)
    except OSError:
        return "unreadable"
    return f"{facts.st_size} {facts.st_mtime_ns}"
