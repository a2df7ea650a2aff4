"""What a user's factory makes: MODULE:FACTORY of the command line."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from transect.domain.errors import BadInput

EXPECTED = "expected MODULE:FACTORY, a module's name or file and a function in it"


def made_by(reference: str) -> Any:
    """Call FACTORY of MODULE, a dotted name or a file `.py`, and return what it makes; raises BadInput when there is none."""
    name, _, factory = reference.rpartition(":")
    if not name or not factory:
        raise BadInput(f"{reference}: {EXPECTED}")
    module = _load_file(Path(name)) if name.endswith(".py") else _load_name(name)
    make = getattr(module, factory, None)
    if not callable(make):
        raise BadInput(f"{reference}: {name} has no function {factory}")
    return make()


def _load_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise BadInput(f"{name}: no module of this name; {EXPECTED}") from None
        raise


def _load_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise BadInput(f"{file}: no such file; {EXPECTED}")
    # Its neighbours can be imported, as from a script.
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module
