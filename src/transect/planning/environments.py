"""Lock hashes: what an environment is made from."""

from __future__ import annotations

import platform
import sys
from functools import cache
from pathlib import Path

from transect.domain.errors import unknown_name
from transect.domain.files import digest
from transect.domain.paths import ROOT, environments_folder

__all__ = ["environment_folder", "environment_names", "environment_source", "lock_hash"]


def environment_source(name: str) -> Path:
    """Return the folder with requirements.txt: `envs/NAME`, or a plug-in folder's `envs/NAME`."""
    from transect.domain.registry import plugin_folders

    for base in (ROOT, *plugin_folders()):
        if (base / "envs" / name / "requirements.txt").is_file():
            return base / "envs" / name
    raise unknown_name("environment", name, environment_names())


def environment_names() -> list[str]:
    """Return the names of the environments under `envs/`."""
    return sorted(path.parent.name for path in (ROOT / "envs").glob("*/requirements.txt"))


@cache
def lock_hash(name: str) -> str:
    """Hash requirements, build script, Python version and architecture: 16 hexadecimal digits."""
    folder = environment_source(name)
    parts: list[str | bytes] = [sys.version.split()[0], platform.machine(), sys.platform]
    for file in ("requirements.txt", "build.sh"):
        if (folder / file).is_file():
            parts += [file, (folder / file).read_bytes()]
    return digest(parts)[:16]


def environment_folder(name: str) -> Path:
    """Return where the environment is or will be."""
    return environments_folder() / f"{name}-{lock_hash(name)}"
