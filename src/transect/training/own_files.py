"""Imports files of the user's: those of modules, datasets, losses and schedules."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from transect.domain.errors import FAULTS, BadInput, MissingDependency


def member_of(file: Path, name: str) -> Any:
    """Import a file as Python would from its folder, or from above its package; return what it calls `name`.

    Raises BadInput naming the file, or MissingDependency where it imports what is not installed.
    """
    package = file.parent
    parts = [file.stem]
    while (package / "__init__.py").is_file():
        parts.insert(0, package.name)
        package = package.parent
    if str(package) not in sys.path:
        sys.path.insert(0, str(package))
    try:
        # `net.v2.py` has no name by which it could be imported.
        module = importlib.import_module(".".join(parts)) if all(map(str.isidentifier, parts)) else None
        if module is None or Path(module.__file__ or "").resolve() != file.resolve():
            # Or the name is taken, as that of `train.py` beside an installed `train`.
            module = _by_path(file.resolve())
    except ModuleNotFoundError as error:
        raise MissingDependency(f"{file}: imports {error.name}, which this environment does not have") from error
    except FAULTS as error:
        raise BadInput(f"{file}: cannot be imported: {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        known = ", ".join(sorted(member for member in vars(module) if not member.startswith("_")))
        raise BadInput(f"{file}: there is no {name}: expected one of {known}")
    return getattr(module, name)


@cache
def _by_path(file: Path) -> ModuleType:
    """Import a file by no name; once, so that its classes are the same for all who ask."""
    spec = importlib.util.spec_from_file_location(f"transect_own_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
