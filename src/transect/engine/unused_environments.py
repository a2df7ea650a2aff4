"""Environments and images of the cache that no definition makes any more: what they are, and their removal.

Ours is what says so itself: an environment with the file that its builder writes last, an image likewise, a build that was
killed by the lock beside it, and what a removal or the making of an image that was killed left by its name. All else stays.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transect.domain.errors import BadInput
from transect.domain.paths import ROOT, environments_folder
from transect.domain.registry import plugin_folders
from transect.engine.build_environment import COMPLETE
from transect.engine.build_image import remove_tree
from transect.engine.environment_use import notes_of, running, unread_note, uses_of
from transect.engine.locks import BUILDER, Busy, one_builder, who_holds
from transect.launch.images import COMPLETE as IMAGE_COMPLETE
from transect.launch.images import ROOT_NAME
from transect.planning.environments import lock_hash, lock_of_definition, needs_of
from transect.planning.images import has_image, image_lock_of

_NAME = re.compile(r"(?P<name>.+)-[0-9a-f]{16}")
# A removal that was killed, and of images a making: their builders give them such names.
_LEFT = re.compile(r"\.(?P<folder>.+-[0-9a-f]{16})\.(?P<how>removed-[0-9a-f]{8}|[0-9]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """An environment, an image, or what is left of one. `used`: when last, in seconds since 1970; `noted`: or only built then."""

    folder: Path
    kind: str
    used: float
    noted: bool

    def size(self) -> int:
        """Return the bytes that it takes on its disk. Slow: it looks at every file."""
        return _disk_bytes(self.folder)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """What is not ours, or what no definition makes any more and is needed all the same; why."""

    folder: Path
    reason: str


def find_unused() -> tuple[list[Found], list[Kept]]:
    """Return what no definition makes any more, and what has to stay besides. Raises BadInput without a cache.

    Definitions are those of this checkout, of the folders of TRANSECT_PLUGINS, and those that are noted as used.
    """
    base = environments_folder()
    if not base.is_dir():
        raise BadInput(f"{base}: no such folder, so there are no environments: TRANSECT_ENVS says where they are")
    named = _named()
    unused: list[Found] = []
    kept: list[Kept] = []
    for found in (*_found(base, images=False), *_found(base / "images", images=True)):
        if isinstance(found, Kept):
            kept.append(found)
        elif found.folder.name in named or _elsewhere(found):
            continue
        elif reason := why_kept(found.folder):
            kept.append(Kept(folder=found.folder, reason=reason))
        else:
            unused.append(found)
    return unused, kept


def _found(base: Path, *, images: bool) -> Iterator[Found | Kept]:
    """Yield what lies in the folder of environments or in that of images, by what says that it is ours."""
    complete, kind = (IMAGE_COMPLETE, "image") if images else (COMPLETE, "environment")
    for folder in sorted(base.iterdir()) if base.is_dir() else ():
        if folder.is_symlink() or not folder.is_dir():
            continue
        if left := _LEFT.fullmatch(folder.name):
            if left["how"].startswith("removed-") or (images and (folder / ROOT_NAME).is_dir()):
                yield Found(
                    folder=folder, kind=f"{kind}, half removed or made", used=folder.stat().st_mtime, noted=False
                )
        elif not _NAME.fullmatch(folder.name):
            continue  # compiled wheels, and whatever else
        elif (folder / complete).is_file():
            times = [use.when for use in uses_of(folder)]
            built = (folder / complete).stat().st_mtime
            yield Found(folder=folder, kind=kind, used=max(times, default=built), noted=bool(times))
        elif _lock_file(folder).is_file():
            yield Found(folder=folder, kind=f"{kind}, half built", used=folder.stat().st_mtime, noted=False)
        else:
            yield Kept(folder=folder, reason=f"is not known as ours: it has no {complete}")


def _sources() -> list[Path]:
    return [path.parent for base in (ROOT, *plugin_folders()) for path in base.glob("envs/*/requirements.txt")]


def _named() -> set[str]:
    """Return the folder names of all environments and images that a definition here makes."""
    return {name for source in _sources() for name in _names_of(source, lock_hash(source.name))}


def _names_of(definition: Path, lock: str) -> set[str]:
    names = {f"{definition.name}-{lock}"}
    if has_image(definition):
        names.add(f"{definition.name}-{image_lock_of(definition, lock)}")
    return names


def _elsewhere(found: Found) -> bool:
    """Whether a definition outside of this checkout makes it, such as one beside a study, which is noted where it was used.

    One that cannot be read counts as one that does.
    """
    noted = {use.definition for use in uses_of(found.folder)} - {source.resolve() for source in _sources()}
    for definition in noted:
        try:
            if (definition / "requirements.txt").is_file():
                lock = lock_of_definition(definition, needs_of(definition))
                if found.folder.name in _names_of(definition, lock):
                    return True
        except (OSError, ValueError):
            return True
    return False


def why_kept(folder: Path) -> str | None:
    """Return why an environment, an image or what is left of one cannot be removed now, or None."""
    left = _LEFT.fullmatch(folder.name)
    whole = folder.with_name(left["folder"]) if left else folder
    if holder := who_holds(_lock_file(whole)):
        return f"is being built by {holder}"
    if os.geteuid() not in (0, folder.stat().st_uid):
        return "belongs to another user"
    if left:
        return None
    base = environments_folder()
    for lock in (*base.glob(f"*{BUILDER}"), *base.glob(f"images/*{BUILDER}")):
        # An image is made of an environment, and a build may stand on another one.
        if folder.parent == base and (holder := who_holds(lock)):
            return f"{lock.name.removesuffix(BUILDER)} is being built by {holder}, and may need it"
    if note := unread_note(folder):
        return f"who uses it is not known: {note} cannot be read"
    return running(uses_of(folder)) or _process_in(folder)


def _process_in(folder: Path) -> str | None:
    """Return which process of this machine was started with a file of the folder, or None."""
    signs = tuple(os.fsencode(one) + b"/" for one in (folder, folder.resolve()))
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        if any(word.startswith(signs) for word in words):
            return f"process {place.name} runs from it"
    return None


def remove(found: Found) -> str | None:
    """Remove it, or return why not.

    Its name goes first: a removal that is killed leaves nothing that could be taken for an environment.
    """
    folder, left = found.folder, _LEFT.fullmatch(found.folder.name)
    try:
        # Much may have begun since it was found.
        if reason := why_kept(folder):
            return reason
        with one_builder(folder.with_name(left["folder"]) if left else folder, patience_s=0):
            aside = folder
            if not left:
                aside = folder.with_name(f".{folder.name}.removed-{secrets.token_hex(4)}")
                folder.rename(aside)
                # A study that began after the look has noted so, or finds nothing here.
                if reason := running(uses_of(folder)) or _process_in(folder):
                    aside.rename(folder)
                    return reason
            remove_tree(aside)
            if not left and (notes := notes_of(folder)).is_dir():
                remove_tree(notes)
    except Busy:
        return "is being built or removed right now"
    except OSError as error:
        return f"cannot be removed: {error.strerror}"
    return None


def _lock_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{BUILDER}")


def _disk_bytes(folder: Path) -> int:
    seen: set[tuple[int, int]] = set()
    total = 0
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                facts = Path(where, name).lstat()
                total += 0 if (facts.st_dev, facts.st_ino) in seen else facts.st_blocks * 512
                seen.add((facts.st_dev, facts.st_ino))
    return total
