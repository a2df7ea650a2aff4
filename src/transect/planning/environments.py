"""Lock hashes: what an environment is made from."""

from __future__ import annotations

import platform
import re
import sys
from functools import cache
from pathlib import Path

from transect.domain.errors import unknown_name
from transect.domain.files import canonical_json, digest
from transect.domain.paths import ROOT, environments_folder
from transect.domain.system import EnvironmentChoice

__all__ = [
    "environment_folder",
    "environment_names",
    "environment_source",
    "has_environment",
    "lock_hash",
    "shared_files",
]

# How a build script names what it uses of `envs/shared/`.
_SHARED = re.compile(rb"\bshared/([A-Za-z0-9_.-]+)")


def _find(name: str) -> Path | None:
    from transect.domain.registry import plugin_folders

    for base in (ROOT, *plugin_folders()):
        if (base / "envs" / name / "requirements.txt").is_file():
            return base / "envs" / name
    return None


def has_environment(name: str) -> bool:
    """Whether `environment_source` finds it."""
    return _find(name) is not None


def environment_source(name: str) -> Path:
    """Return the folder with requirements.txt: `envs/NAME`, or a plug-in folder's `envs/NAME`."""
    found = _find(name)
    if found is None:
        raise unknown_name("environment", name, environment_names())
    return found


def environment_names() -> list[str]:
    """Return the names of the environments under `envs/`."""
    return sorted(path.parent.name for path in (ROOT / "envs").glob("*/requirements.txt"))


def shared_files(folder: Path) -> list[Path]:
    """Return the files of `envs/shared/` that an environment's build.sh uses, sorted.

    A file counts when build.sh, or a shared file that counts, mentions `shared/NAME`; a mention
    of something that is not there is none. Every other file there changes nothing.
    """
    found: set[Path] = set()
    unread = [folder / "build.sh"]
    while unread:
        file = unread.pop()
        names = _SHARED.findall(file.read_bytes()) if file.is_file() else []
        mentioned = {folder.parent / "shared" / name.decode() for name in names}
        new = {path for path in mentioned - found if path.is_file()}
        found |= new
        unread += new
    return sorted(found)


def lock_hash(name: str, choice: EnvironmentChoice | None = None) -> str:
    """Hash what an environment is made from: 16 hexadecimal digits.

    Requirements, build script with the shared files that it uses, Python version and architecture;
    or, where the system chooses modules or an image, those. An image counts by name, size and time
    stamp: it may be large.
    """
    if choice is None:
        return _lock_of_files(name)
    parts = [name, canonical_json(choice.model_dump())]
    if choice.image and Path(choice.image).exists():
        facts = Path(choice.image).stat()
        parts += [str(facts.st_size), str(facts.st_mtime_ns)]
    return digest(parts)[:16]


@cache
def _lock_of_files(name: str) -> str:
    folder = environment_source(name)
    parts: list[str | bytes] = [sys.version.split()[0], platform.machine(), sys.platform]
    for file in ("requirements.txt", "build.sh"):
        if (folder / file).is_file():
            parts += [file, (folder / file).read_bytes()]
    for path in shared_files(folder):
        parts += [f"shared/{path.name}", path.read_bytes()]
    return digest(parts)[:16]


def environment_folder(name: str) -> Path:
    """Return where the environment is or will be."""
    return environments_folder() / f"{name}-{lock_hash(name)}"
