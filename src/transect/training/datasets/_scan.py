"""What every layout of an image folder shares: entries in order, class folders, which classes are chosen."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from transect.domain.errors import BadInput

SUFFIXES = (".jpg", ".jpeg", ".png")

# How many classes, the first by name, or which; None: all.
Choice = int | list[str] | None
Files = dict[str, list[str]]


@dataclass(kw_only=True, slots=True)
class Found:
    """What a folder holds: paths below it by class, both sorted by the bytes of their names.

    `test` are those of the set's own test part, of the same classes; None: one is to be drawn.
    """

    folder: Path
    layout: str = ""
    train: Files = field(default_factory=dict)
    test: Files | None = None
    left_out: list[dict[str, str]] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    # Classes that were not chosen.
    other_classes: int = 0
    # Which label counts, where a file may have several.
    rule: str = ""

    def leave_out(self, file: str, reason: str) -> None:
        """Note a path below the folder that is not used."""
        self.left_out.append({"file": printable(file), "reason": reason})


def printable(name: str) -> str:
    """Return a file name as text that can be stored: what is not UTF-8 becomes `\\xNN`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def entries(found: Found, below: str = "") -> list[os.DirEntry[str]]:
    """Return what is visible in a folder, sorted by the bytes of its names. Raises BadInput where it cannot be read."""
    folder = found.folder / below
    try:
        with os.scandir(folder) as scanned:
            everything = sorted(scanned, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        raise BadInput(f"{printable(str(folder))}: {error.strerror}") from None
    found.hidden |= {joined(below, entry.name) for entry in everything if entry.name.startswith(".")}
    return [entry for entry in everything if not entry.name.startswith(".")]


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:
        # A link that leads nowhere, or to itself.
        return False


def joined(*parts: str) -> str:
    """Return a path below the folder, of parts that may be empty."""
    return "/".join(part for part in parts if part)


def image_files(found: Found, below: str) -> list[str]:
    """Return the files of one folder that are named as images; note the others. Folders inside are not entered."""
    names = []
    for file in entries(found, below):
        path = joined(below, file.name)
        # A folder by the name of an image is left to the reader, which says what it is.
        if file.name.lower().endswith(SUFFIXES):
            names.append(path)
        else:
            inner = "a folder inside a class folder"
            found.leave_out(path, inner if is_folder(file) else f"not named {', '.join(SUFFIXES)}")
    return names


def class_folders(found: Found, below: str = "") -> list[str]:
    """Return the names of the folders in one; note what is beside them."""
    names = []
    for entry in entries(found, below):
        if is_folder(entry):
            names.append(entry.name)
        else:
            found.leave_out(joined(below, entry.name), "beside the class folders")
    return names


def unknown_class(name: str, known: Collection[str], where: str) -> BadInput:
    """Make the error for a class that is not there; of thousands the nearest ones are named."""
    # One name of two classes stands before what tells them apart.
    near = [one for one in known if one.startswith(f"{name} ")][:3]
    near = near or difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f" did you mean {', '.join(map(printable, near))}?" if near else ""
    return BadInput(f"{where}: unknown class '{name}':{hint} {len(known)} are there")


def choose(
    found: Found, names: Iterable[str], choice: Choice, others: Mapping[str, list[str]] | None = None
) -> list[str]:
    """Return the chosen ones of `names`, in their order; `others`: what each is called besides.

    Raises BadInput for a name that is not there, or more than there are.
    """
    everything = list(names)
    where = printable(str(found.folder))
    if choice is None:
        return everything
    if isinstance(choice, int):
        if choice > len(everything):
            raise BadInput(f"{where}: option 'classes': {choice} are asked for, {len(everything)} are there")
        chosen = everything[:choice]
    else:
        called: dict[str, set[str]] = {}
        for name in everything:
            for other in (others or {}).get(name, []):
                called.setdefault(other, set()).add(name)
        called |= {name: {name} for name in everything}
        for name in choice:
            if name not in called:
                raise unknown_class(name, everything, f"{where}: option 'classes'")
            if len(called[name]) > 1:
                several = " and ".join(map(printable, sorted(called[name])))
                raise BadInput(f"{where}: option 'classes': '{name}' may be {several}: name one of them")
        wanted = set().union(*map(called.__getitem__, choice))
        chosen = [name for name in everything if name in wanted]
    found.other_classes = len(everything) - len(chosen)
    return chosen
