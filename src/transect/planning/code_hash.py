"""The hash of the source files that a stage runs: an import closure, read from the sources.

Snakemake does not see an edit of a module, so this hash is a parameter of every rule. The closure
follows `import transect…` and `from .…` statements anywhere in a file, also inside functions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from transect import stages
from transect.domain.files import digest

__all__ = ["PACKAGE", "Sources", "closure", "code_hash", "hash_sources"]

PACKAGE = Path(__file__).resolve().parents[1]
_NAMES = r"import[ \t]+(\([^)]*\)|(?:\\\n|[^\n])+)"
_FROM = re.compile(rf"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+{_NAMES}", re.MULTILINE)
_IMPORT = re.compile(rf"^[ \t]*{_NAMES}", re.MULTILINE)


def _file(module: str) -> Path | None:
    parts = module.split(".")
    base = PACKAGE.parent.joinpath(*parts)
    if parts[:2] == ["transect", "stages"] and len(parts) > 2:
        # A stage may stand in a plug-in folder.
        places = (Path(place).joinpath(*parts[2:]) for place in stages.__path__)
        base = next((p for p in places if p.with_suffix(".py").is_file() or p.is_dir()), base)
    return _module_at(base)


def _module_at(base: Path) -> Path | None:
    if base.with_suffix(".py").is_file():
        return base.with_suffix(".py")
    return base / "__init__.py" if (base / "__init__.py").is_file() else None


@cache
def _text(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _imports(path: Path) -> frozenset[Path]:
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
        parts = module.split(".")
        found |= {_file(".".join(parts[:end])) for end in range(1, len(parts) + 1)}
    return frozenset(file for file in found if file is not None)


def _packages(path: Path) -> list[Path]:
    """Return what runs before a module of ours does: its packages."""
    if not path.is_relative_to(PACKAGE):
        return []
    depth = len(path.relative_to(PACKAGE).parts)
    inits = (parent / "__init__.py" for parent in path.parents[:depth])
    return [init for init in inits if init.is_file()]


@cache
def closure(root: Path) -> frozenset[Path]:
    """Return the file and every file of the package that it imports, directly or not."""
    seen: set[Path] = set()
    open_files = [root, *_packages(root)]
    while open_files:
        path = open_files.pop()
        if path not in seen:
            seen.add(path)
            open_files.extend(_imports(path) - seen)
    return frozenset(seen)


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that something runs, by a name that is equal on every machine, with their hashes.

    `hash` changes when one of them does: 16 hexadecimal digits.
    """

    hash: str
    files: dict[str, str]


def _name(path: Path) -> str:
    """Return a path from the package's parent on, or the name of a file from elsewhere."""
    if path.is_relative_to(PACKAGE.parent):
        return path.relative_to(PACKAGE.parent).as_posix()
    return path.name


@cache
def _file_hash(path: Path) -> str:
    return hashlib.sha256(_text(path)).hexdigest()[:16]


@cache
def hash_sources(roots: frozenset[Path]) -> Sources:
    """Hash the closures of all roots."""
    paths: set[Path] = set()
    for root in roots:
        paths |= closure(root) if root.suffix == ".py" else {root}
    named = sorted((_name(path), _file_hash(path)) for path in paths)
    whole = digest(part for pair in named for part in pair)[:16]
    return Sources(whole, dict(named))


def code_hash(roots: Iterable[Path]) -> str:
    """Hash the closures of all roots: 16 hexadecimal digits, equal on every machine."""
    return hash_sources(frozenset(roots)).hash
