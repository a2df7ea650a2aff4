"""Images as wrappers find them: those that transect made, and anybody's folders and files.

An image of transect's is a folder: `root/`, its root file system; `image.sqfs`, where a wrapper wants one
file; and `transect-image.json`, written last, which says what it is and that it is whole.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import digest

COMPLETE = "transect-image.json"
ROOT_NAME, PACKED = "root", "image.sqfs"
_AT = "@"


def parts_of(name: str) -> tuple[str, str]:
    """Return environment and wrapper of a name; the wrapper is empty where there is no container.

    >>> parts_of("base@podman"), parts_of("base")
    (('base', 'podman'), ('base', ''))
    """
    environment, _, wrapper = name.partition(_AT)
    return environment, wrapper


def in_container(environment: str, wrapper: str) -> str:
    """Return the name of an environment inside its image."""
    return f"{environment}{_AT}{wrapper}"


def image_facts(folder: Path) -> dict[str, Any] | None:
    """Return what an image of transect's says of itself; None for one that is not whole, or no such image."""
    try:
        facts = json.loads((folder / COMPLETE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


def imported_name(folder: Path) -> str:
    """Return what an image of transect's is called in a storage; `localhost`, so that no registry is asked for it.

    One that was made again, or in another cache, is another one, whatever it was made of.
    """
    made = digest([(folder / COMPLETE).read_bytes()])[:8]
    return f"localhost/transect:{folder.name}-{made}"


def root_of(image: str, form: str = "folder") -> str | None:
    """Return what a wrapper is to be given of an image here; None for a URI, or what is not there."""
    # Without its folder, podman takes it for a name in its storage.
    path = Path(image).absolute()
    if "://" in image or not path.exists():
        return None
    if (path / ROOT_NAME).is_dir() and (path / COMPLETE).is_file():
        if form == "imported":
            return imported_name(path)
        return str(path / (PACKED if form == "squashfs" else ROOT_NAME))
    return str(path)


def complaint(image: str) -> str | None:
    """Return why an image cannot be used here, or None. A URI is the wrapper's to look at; so is another machine's."""
    if "://" in image:
        return None
    path = Path(image)
    if not path.exists():
        return f"image {image} is not there"
    if (path / ROOT_NAME).is_dir() and image_facts(path) is None:
        return f"image {image} is not whole: {COMPLETE} is missing or cannot be read"
    return None


def mount_points(root: Path, folders: tuple[str, ...]) -> None:
    """Make the empty folders at which a wrapper binds those of the host.

    A root file system of another user, or one that is read-only, must have them already.
    Raises BadInput naming the first one that it lacks.
    """
    for folder in folders:
        inside = root / folder.lstrip("/")
        try:
            inside.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"image {root} has no folder {folder}, to show the host's: {error.strerror}") from None
