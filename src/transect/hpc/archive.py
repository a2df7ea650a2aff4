"""Reads an archive of logs, and a second time only what changed.

What a file gave is kept in the user's cache folder. A cache that cannot be read or written is reported once; without it
nothing is lost but time.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from transect.domain.file_cache import FileCache
from transect.domain.files import state_of
from transect.domain.registry import plugin_folders
from transect.hpc.base import PARSERS, Run
from transect.hpc.ingest import UNREADABLE, read_file
from transect.hpc.refusal import Refusal
from transect.hpc.sources import find_files
from transect.hpc.table import runs_from_json, to_json

# Told after each file: files read, files in all, bytes so far, how many came from the cache.
Progress = Callable[[int, int, int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """All runs of an archive, in the order of its files; `known` files came from the cache."""

    runs: list[Run]
    files: int
    known: int
    bytes: int
    note: str = ""


def sources() -> list[bytes]:
    """Return the name and content of each source that reads logs, those of plug-ins included."""
    folder = Path(__file__).parent
    files = {*folder.rglob("*.py"), folder.parent / "domain" / "metrics.py"}
    for name in PARSERS:
        module = sys.modules.get(type(PARSERS.get(name)).__module__)
        if module is not None and module.__file__:
            files.add(Path(module.__file__))
    for place in plugin_folders():
        files |= {*place.rglob("*.py")}  # what they import from beside them
    return [part for file in sorted(files) for part in (file.name.encode(), file.read_bytes())]


def read_archive(
    paths: Sequence[Path],
    *,
    refusal: Refusal | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Archive:
    """Return all runs under `paths` as `ingest` does, from `cache` (a folder) what has not changed since.

    Raises BadInput for a path that is not there.
    """
    files = find_files(paths)
    kept = FileCache(None if cache is None else cache / "logs.sqlite", sources())
    rules, runs = refusal or Refusal(), list[Run]()
    known = size = 0
    with contextlib.closing(kept):
        for number, (found, was_known, bytes_read) in enumerate(_each(files, kept), 1):
            known += was_known
            size += bytes_read
            runs += [rules.judged(run) for run in found]
            if progress is not None:
                progress(number, len(files), size, known)
    return Archive(runs=runs, files=len(files), known=known, bytes=size, note=kept.note)


def _each(files: Sequence[Path], kept: FileCache) -> Iterator[tuple[list[Run], bool, int]]:
    for path in files:
        state, size = _look(path)
        place = os.fsencode(os.path.realpath(path))  # a name may be no text
        found = _runs_of(kept.get(place, state))
        if found is not None:
            # The same file may be read by another name.
            name = os.fsencode(path).decode("utf-8", "replace")
            yield [run.model_copy(update={"file": name}) for run in found], True, size
            continue
        runs = list(read_file(path))
        # What keeps a file from being read (rights, a file server) may go without a change of the file.
        unread = any(run.line == 0 and run.reason.startswith(UNREADABLE) for run in runs)
        # What was written to while it was read is read again next time.
        if not unread and _look(path)[0] == state:
            kept.put(place, state, to_json(runs))
        yield runs, False, size


def _runs_of(text: str | None) -> list[Run] | None:
    try:
        return None if text is None else runs_from_json(text)
    except ValueError:  # half a character, as a log may have, is no JSON to pydantic
        return None


def _look(path: Path) -> tuple[str, int]:
    try:
        facts = path.stat()
    except OSError:
        return "", 0
    return state_of(facts), facts.st_size
