"""Where benchmarks of file systems write."""

from __future__ import annotations

import os
from pathlib import Path

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._options import OptionError, text

FOLDER_MEANING = (
    "absolute path of the folder to write in; default: $TMPDIR on one node, the cell's own folder "
    "on several, where it has to be shared"
)
# Constant, as those of transect.launch.wrapping: the payload's own TMPDIR is known to it alone.
_SCRIPT = 'place=$1; flag=$2; shift 2; exec "$@" "$flag" "${TMPDIR:-.}/$place"'


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
    if target is not None:
        return [*argv, flag, f"{target}/{place}"]
    if cell.nodes > 1:
        return [*argv, flag, str(folder / place)]
    return ["sh", "-c", _SCRIPT, "transect", place, flag, *argv]
