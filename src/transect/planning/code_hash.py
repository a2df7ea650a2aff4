"""The hash of the source files that a stage runs: an import closure, read from the sources.

Snakemake does not see an edit of a module, so this hash is a parameter of every rule. The closure
follows `import transect…` statements anywhere in a file, also inside functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from transect.domain.files import digest

__all__ = ["PACKAGE", "closure", "code_hash"]

PACKAGE = Path(__file__).resolve().parents[1]
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(transect[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)|import[ \t]+(transect[\w.]*))",
    re.MULTILINE,
)


def _file(module: str) -> Path | None:
    base = PACKAGE.parent.joinpath(*module.split("."))
    if base.with_suffix(".py").is_file():
        return base.with_suffix(".py")
    return base / "__init__.py" if (base / "__init__.py").is_file() else None


@cache
def _text(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _imports(path: Path) -> frozenset[Path]:
    found = set()
    for package, names, plain in _IMPORT.findall(_text(path).decode("utf-8", "replace")):
        modules = [package or plain]
        modules += [f"{package}.{name}" for name in re.findall(r"\w+", names) if package]
        for module in modules:
            # A package's own __init__ runs too.
            parts = module.split(".")
            for end in range(1, len(parts) + 1):
                file = _file(".".join(parts[:end]))
                if file is not None:
                    found.add(file)
    return frozenset(found)


@cache
def closure(root: Path) -> frozenset[Path]:
    """Return the file and every file of the package that it imports, directly or not."""
    seen: set[Path] = set()
    open_files = [root]
    while open_files:
        path = open_files.pop()
        if path not in seen:
            seen.add(path)
            open_files.extend(_imports(path) - seen)
    return frozenset(seen)


@cache
def _hash(roots: frozenset[Path]) -> str:
    files: set[Path] = set()
    for root in roots:
        files |= closure(root) if root.suffix == ".py" else {root}
    return digest(part for path in sorted(files) for part in (path.name, _text(path)))[:16]


def code_hash(roots: Iterable[Path]) -> str:
    """Hash the closures of all roots: 16 hexadecimal digits, equal on every machine."""
    return _hash(frozenset(roots))
