"""`python -m transect.portable_step MODULE:FACTORY --out FOLDER`: export where torch is.

What `transect export-step` runs; it needs torch, onnx and onnxscript, and nothing else of transect's.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

from transect.domain.errors import BadInput, MissingDependency, say_fault
from transect.portable_step.export import Step, export_step

EXPECTED = "expected MODULE:FACTORY, a module's name or file and a function in it"


def load_step(reference: str) -> Step:
    """Call FACTORY of MODULE, a dotted name or a file `.py`; raises BadInput when it is no Step."""
    name, _, factory = reference.rpartition(":")
    if not name or not factory:
        raise BadInput(f"{reference}: {EXPECTED}")
    module = _load_file(Path(name)) if name.endswith(".py") else _load_name(name)
    make = getattr(module, factory, None)
    if not callable(make):
        raise BadInput(f"{reference}: {name} has no function {factory}")
    step = make()
    if not isinstance(step, Step):
        raise BadInput(f"{reference}: it returned {type(step).__name__}, expected transect.portable_step.Step")
    return step


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


def main(arguments: list[str] | None = None) -> int:
    """Export; return the exit code: 0, 2 for bad input, 3 when torch or onnx is missing."""
    parser = argparse.ArgumentParser(prog="transect export-step")
    parser.add_argument("reference", metavar="MODULE:FACTORY")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    sys.path.insert(0, str(Path.cwd()))
    try:
        for library in ("torch", "onnx", "onnxscript"):
            if importlib.util.find_spec(library) is None:
                raise MissingDependency(f"{library}: not installed in {sys.executable}")
        step = load_step(given.reference)
        options: dict[str, Any] = {field.name: getattr(step, field.name) for field in fields(step)}
        manifest = export_step(folder=given.out, **options)
    except Exception as error:
        return say_fault(error, given.out)
    if manifest.checked and manifest.checked.unchecked:
        print(f"{given.out}: {manifest.checked.unchecked}")
    files = ", ".join(sorted(graph.file for graph in manifest.graphs.values()))
    print(f"{given.out}: {files}; {len(manifest.state)} tensors of state; {manifest.step_graph}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
