"""Where benchmarks of file systems write."""

from __future__ import annotations

import os
import re
from abc import ABC
from pathlib import Path

from transect.domain.axes.bench import BenchCell
from transect.domain.record import Cause
from transect.hpc.benchmarks._options import OptionError, text
from transect.hpc.benchmarks.base import Benchmark

FOLDER_MEANING = (
    "absolute path of the folder to write in; default: $TMPDIR on one node, the cell's own folder "
    "on several, where it has to be shared"
)
# Constant, as those of transect.launch.wrapping: the payload's own TMPDIR is known to it alone. What is written into memory
# looks like a rate of storage, and a good one.
PLACE = (
    'case $1 in /*) place=$1;; *) place=${TMPDIR:-.}/$1;; esac; case $(stat -f -c %T "${place%/*}" 2>/dev/null) in '
    'tmpfs|ramfs) echo "status: unusable: ${place%/*} keeps files in memory: expected a folder on storage, see option folder"; '
    "exit 3;; esac; "
)
_SCRIPT = PLACE + 'flag=$2; shift 2; exec "$@" "$flag" "$place"'
_UNUSABLE = re.compile(r"^(?:\[\d+\] )?status: unusable: (.+)$", re.MULTILINE)


class OfFiles(Benchmark, ABC):
    """A benchmark of a folder."""

    def verdict(self, folder: Path, code: int) -> tuple[Cause, str] | None:
        """Return in the words of the log that the folder cannot be used."""
        log = folder / "output.log"
        match = _UNUSABLE.search(log.read_text(errors="replace")) if log.is_file() else None
        return (Cause.BAD_INPUT, match[1]) if match else super().verdict(folder, code)


def target_folder(cell: BenchCell) -> str | None:
    """Return the folder that the cell names, or None. Raises OptionError for a relative path."""
    if not cell.option("folder", ""):
        return None
    folder = text(cell, "folder", "", r"[^\x00-\x1f]+", "an absolute path")
    if not folder.startswith("/"):
        raise OptionError(f"option folder: expected an absolute path, found {folder!r}")
    return folder


def place_of(cell: BenchCell) -> str:
    """Return a name that no other run has: nodes may number their processes alike and share the folder."""
    return f"transect-{cell.benchmark}-{os.uname().nodename}-{os.getpid()}"


def in_folder(cell: BenchCell, folder: Path, argv: list[str], flag: str) -> list[str]:
    """Return `argv` with `flag` and the path to write to, whose name no other run has."""
    place, target = place_of(cell), target_folder(cell)
    if target is None and cell.nodes > 1:
        target = str(folder)
    return ["sh", "-c", _SCRIPT, "transect", f"{target}/{place}" if target else place, flag, *argv]
