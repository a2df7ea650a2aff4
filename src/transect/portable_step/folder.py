"""Writing a step's folder whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.portable_step.manifest import read_manifest


def check_folder(folder: Path) -> None:
    """Raise BadInput unless the folder is new, empty or that of a step, which is replaced."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder}: a file, expected a folder to write the step into")
    if folder.is_dir() and any(folder.iterdir()):
        try:
            read_manifest(folder)
        except BadInput as error:
            raise BadInput(f"{folder}: it holds something else than a step: {error}") from None


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files beside the folder, then put them in its place.

    Raises OSError when there is no room; the folder then is as it was.
    """
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    before = beside.with_suffix(".before")
    try:
        for name, content in files.items():
            write_atomic(beside / name, content)
        if folder.exists():
            folder.rename(before)
        beside.rename(folder)
    finally:
        if before.exists() and not folder.exists():
            before.rename(folder)
        shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)
