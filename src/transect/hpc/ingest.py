"""Reads benchmark logs from files and folders. Nothing that was given is dropped in silence."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from transect.hpc.base import PARSERS, Run
from transect.hpc.refusal import Refusal
from transect.hpc.scan import Scanner, no_result
from transect.hpc.sources import find_files

# How the reason begins of a file that could not be read.
UNREADABLE = "cannot be read"

_REFUSES_NOTHING = Refusal()


def ingest(paths: Sequence[Path], benchmark: str | None = None, refusal: Refusal = _REFUSES_NOTHING) -> list[Run]:
    """Return all runs of all files under `paths`, in the order of paths, names and lines.

    `benchmark` overrides the guess of what a file holds, `refusal` is stricter than the logs are. Every file yields at least one run: what
    is not recognised, binary, empty or unreadable is a `no-result` with its reason. Raises
    BadInput for a path that does not exist and for an unknown benchmark.
    """
    return list(iter_runs(paths, benchmark, refusal))


def iter_runs(
    paths: Sequence[Path], benchmark: str | None = None, refusal: Refusal = _REFUSES_NOTHING
) -> Iterator[Run]:
    """Like `ingest`, one run at a time."""
    if benchmark is not None:
        PARSERS.get(benchmark)  # refused though no file is there to be read
    for path in find_files(paths):
        yield from map(refusal.judged, read_file(path, benchmark))


def read_file(path: Path, benchmark: str | None = None) -> Iterator[Run]:
    """Yield the runs of one file; one that cannot be read is a `no-result` with the reason."""
    scanner = _scanner(benchmark, tuple(PARSERS))
    name = os.fsencode(path).decode("utf-8", "replace")
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            os.listdir(path)  # noqa: PTH208 only to learn why it was not entered
        if not stat.S_ISREG(mode):
            yield no_result(name, f"{UNREADABLE}: not a regular file")
            return
        with path.open("rb") as stream:
            yield from scanner.scan(stream, name)
    except OSError as error:
        yield no_result(name, f"{UNREADABLE}: {error.strerror or type(error).__name__}")


@lru_cache(maxsize=4)
def _scanner(benchmark: str | None, _: tuple[str, ...]) -> Scanner:
    """Keep what takes a third of a second to compile; other parsers make another scanner."""
    return Scanner(benchmark)
