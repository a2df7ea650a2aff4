"""Writing files that are not there yet: all of them, or none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic


def write_new(files: Mapping[Path, str]) -> None:
    """Write every file. Raises BadInput that names those which are there, before anything is written.

    What an OSError leaves half way is removed again; folders that were made stay.
    """
    if there := [path for path in files if os.path.lexists(path)]:
        raise BadInput(*(f"{path}: is there already, and is not overwritten: nothing was written" for path in there))
    for path in files:
        above = next(folder for folder in path.parents if os.path.lexists(folder))
        if not above.is_dir():
            raise BadInput(f"{above}: is no folder: nothing was written")
    written: list[Path] = []
    try:
        for path, text in files.items():
            write_atomic(path, text)
            written.append(path)
    except OSError:
        for path in written:
            path.unlink(missing_ok=True)
        raise
