"""The hash of the source files that a stage runs: an import closure, read from the sources.

It is part of the fingerprint of each cell, so that an edit of a module reruns what runs it. The closure
follows `import transect…` and `from .…` statements anywhere in a file, also inside functions. A file from
outside of the package, such as a plug-in, may import its neighbours too, whichever way it makes Python find
them: those are looked for in every folder that it may name (`_places`).
"""

from __future__ import annotations

import hashlib
import os
import re
import site
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from transect.domain.files import digest
from transect.domain.paths import DATA, PACKAGE, ROOT
from transect.domain.registry import plugin_folders

# Programs first: an installed package holds them inside of it, and their names are equal everywhere.
# The last one where a link leads to the package.
_SOURCES = (ROOT / "src", PACKAGE.parent, PACKAGE.parent.resolve())
_GAP = r"(?:[ \t]|\\\n)+"
_NAMES = rf"import{_GAP}(\([^)]*\)|(?:\\\n|[^\n])+)"
_FROM = re.compile(rf"^[ \t]*from{_GAP}(\.*)([\w.]*){_GAP}{_NAMES}", re.MULTILINE)
_IMPORT = re.compile(rf"^[ \t]*{_NAMES}", re.MULTILINE)
# What only files from outside are searched for: imports behind another word of the line, modules and files by
# name. What ends a text in quotes may be a file that is run, or a folder that Python is made to search.
_INSIDE = re.compile(r"[;:][ \t]*((?:from|import)[ \t][^\n;#]+)")
_NAMED = re.compile(r"\b(?:import_module|__import__|run_module)\(\s*(?:\w+=)?[\"'](\.*)([\w.]+)[\"']")
_WORDS = re.compile(r"([\w./-]+)[\"']")


def _ours(path: Path) -> bool:
    """Whether a file is a module of the package: its programs are files from outside."""
    return path.is_relative_to(PACKAGE) and not path.is_relative_to(DATA / "src")


def file_of(module: str) -> Path | None:
    """Return the file of a module of ours, or of a stage in a plug-in folder; None: there is none."""
    parts = module.split(".")
    if parts[:2] != ["transect", "stages"] or len(parts) < 3:
        return _file_in_package(module)
    # A stage may stand in a plug-in folder.
    places = (place.joinpath(*parts[2:]) for place in (PACKAGE / "stages", *plugin_folders()))
    base = next((p for p in places if p.with_suffix(".py").is_file() or p.is_dir()), PACKAGE.parent.joinpath(*parts))
    return _module_at(base)


@cache
def _file_in_package(module: str) -> Path | None:
    return _module_at(PACKAGE.parent.joinpath(*module.split(".")))


def _module_at(base: Path) -> Path | None:
    # As Python looks: a package goes before a module of its name.
    for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
        if path.is_file():
            return path
    return None


@cache
def _text(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Return what a file of the package imports, or a file from outside of the package and by `.`."""
    text = _text(path).decode("utf-8", "replace")
    found: set[Path | None] = set()
    modules = [m for names in _IMPORT.findall(text) for m in re.findall(r"\btransect[\w.]*", names)]
    for dots, package, names in _FROM.findall(text):
        inside = re.findall(r"\w+", names)
        if dots:
            # As in a stage of a plug-in folder.
            base = path.parents[len(dots) - 1].joinpath(*package.split("."))
            found |= {_module_at(base), *(_module_at(base / name) for name in inside)}
        elif package.split(".")[0] == "transect":
            modules += [package, *(f"{package}.{name}" for name in inside)]
    for module in modules:
        # A package's own __init__ runs too.
        found |= {file_of(name) for name in _with_packages(module)}
    return frozenset(file for file in found if file is not None)


def _with_packages(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _grounds(ground: Path | None) -> list[Path]:
    return [folder.resolve() for folder in (*([ground] if ground else ()), *plugin_folders())]


def _words(text: str) -> list[str]:
    # Behind what a format puts in, a path begins with a slash.
    return sorted({form for word in _WORDS.findall(text) for form in (word, word.lstrip("/"))})


@cache
def _of_pip(folder: Path) -> bool:
    """Whether packages are installed in a folder, as where a study's folder holds the environment of transect."""
    return next(folder.glob("*.dist-info"), None) is not None


def _places(path: Path, text: str, grounds: Iterable[Path]) -> list[Path]:
    """Return the folders from which a file from outside may import.

    Its own and those above it, up to the folder of the study or of plug-ins that holds it; these; what it names
    below one of them; and what it made Python search there.
    """
    above = [folder for folder in path.parents if any(folder.is_relative_to(ground) for ground in grounds)]
    near = [folder for folder in dict.fromkeys([path.parent, *above, *grounds]) if not _of_pip(folder)]
    named = [place / name for name in _words(text) for place in near]
    # What is installed is the environment's, wherever it lies.
    installed = (sys.prefix, sys.base_prefix, site.getusersitepackages())
    searched = [folder for folder in map(Path, sys.path) if not any(map(folder.is_relative_to, installed))]
    more = [place.resolve() for place in (*named, *searched) if os.path.isdir(place)]  # noqa: PTH112 no error for any text
    below = (folder for folder in more if any(map(folder.is_relative_to, grounds)) and not _of_pip(folder))
    return list(dict.fromkeys([*near, *below]))


@cache
def _neighbours(path: Path, grounds: tuple[Path, ...]) -> frozenset[Path]:
    """Return the files that a file from outside imports from elsewhere than the package."""
    text = _text(path).decode("utf-8", "replace")
    text = "\n".join([text, *_INSIDE.findall(text)])
    found: set[Path | None] = set()
    modules: list[str] = []
    for names in _IMPORT.findall(text):
        modules += re.findall(r"(?:^|,)[ \t\\\n(]*([\w.]+)", names)
    for dots, package, names in _FROM.findall(text):
        if not dots:
            modules += [package, *(f"{package}.{name}" for name in re.findall(r"\w+", names))]
    for dots, module in _NAMED.findall(text):
        if dots:
            found.add(_module_at(path.parents[len(dots) - 1].joinpath(*module.split("."))))
        else:
            modules.append(module)
    places = _places(path, text, grounds)
    # The package's own are followed by `_imports`.
    modules = [name for name in modules if name.split(".")[0] != "transect"]
    # Of all that is installed, a package's own modules alone.
    home = next((folder for folder in path.parents if _of_pip(folder)), None)
    for module in {module_name for name in modules for module_name in _with_packages(name) if module_name}:
        own = [home] if home is not None and path.is_relative_to(home / module.split(".")[0]) else []
        for place in [*places, *own]:
            base = place.joinpath(*module.split("."))
            found |= {_module_at(base), *base.parent.glob(f"{base.name}.*so")}
    scripts = [name for name in _words(text) if name.endswith(".py")]
    tried = (place / name for name in scripts for place in places)
    found |= {file for file in tried if os.path.isfile(file)}  # noqa: PTH113 no error for any text
    return frozenset(file for file in found if file is not None)


def _packages(path: Path) -> list[Path]:
    """Return what runs before a module does: its packages."""
    if _ours(path):
        depth = len(path.relative_to(PACKAGE).parts)
        inits = [parent / "__init__.py" for parent in path.parents[:depth]]
        return [init for init in inits if init.is_file()]
    inits = []
    for parent in path.parents:
        if not (parent / "__init__.py").is_file():
            break
        inits.append(parent / "__init__.py")
    return inits


def closure(root: Path, ground: Path | None = None) -> frozenset[Path]:
    """Return the file and every file that it imports, directly or not: of the package, and its neighbours.

    `ground` is the study's folder: what is imported from below it counts, as from below plug-in folders and, of a file
    from outside of the package, from below its own folder, or that of its package.
    """
    return _closure(root, tuple(_grounds(ground)))


@cache
def _closure(root: Path, grounds: tuple[Path, ...]) -> frozenset[Path]:
    if not _ours(root):
        # Whatever the file imports may import what lies there too.
        home = next(folder for folder in root.parents if not (folder / "__init__.py").is_file())
        grounds = grounds if _of_pip(home) else tuple(dict.fromkeys([*grounds, home]))
    seen: set[Path] = set()
    open_files = [root]
    while open_files:
        path = open_files.pop()
        if path in seen:
            continue
        seen.add(path)
        if path.suffix == ".py":
            open_files.extend(_imports(path) - seen)
            if path == root or not _ours(path):
                open_files.extend(_packages(path))
            if not _ours(path):
                open_files.extend(_neighbours(path, grounds) - seen)
    return frozenset(seen)


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that something runs, by a name that is equal on every machine, with their hashes.

    `hash` changes when one of them does: 16 hexadecimal digits.
    """

    hash: str
    files: dict[str, str]


def _name(path: Path, grounds: Iterable[Path]) -> str:
    """Return a path from the package's parent on, from the folder of the study or of plug-ins, or a mere name."""
    for place in (*_SOURCES, *grounds):
        if path.is_relative_to(place):
            return path.relative_to(place).as_posix()
    return path.name


@cache
def _file_hash(path: Path) -> str:
    return hashlib.sha256(_text(path)).hexdigest()[:16]


def hash_sources(roots: frozenset[Path], ground: Path | None = None) -> Sources:
    """Hash the closures of all roots; `ground` as in `closure`."""
    return _hash_sources(roots, tuple(_grounds(ground)))


@cache
def _hash_sources(roots: frozenset[Path], grounds: tuple[Path, ...]) -> Sources:
    paths: set[Path] = set()
    for root in roots:
        paths |= _closure(root, grounds)
    named = sorted((_name(path, grounds), _file_hash(path)) for path in paths)
    whole = digest(part for pair in named for part in pair)[:16]
    return Sources(whole, dict(named))


def changed_sources(files: Mapping[str, str], ground: Path | None) -> list[str]:
    """Return which of the files of `Sources` have changed; a file that is not on this machine is left out."""
    places = (*_SOURCES, *_grounds(ground))
    found = {name: [file for place in places if (file := place / name).is_file()] for name in files}
    return [name for name, here in found.items() if here and _file_hash(here[0]) != files[name]]
