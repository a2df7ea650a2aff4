"""`python -m transect.portable_step MODULE:FACTORY --out FOLDER`: export where torch is.

What `transect export-step` runs; it needs torch, onnx and onnxscript, and nothing else of transect's.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput, MissingDependency, say_fault
from transect.portable_step.export import Step, export_step
from transect.portable_step.factory import made_by


def load_step(reference: str) -> Step:
    """Call FACTORY of MODULE, a dotted name or a file `.py`; raises BadInput when it is no Step."""
    step = made_by(reference)
    if not isinstance(step, Step):
        raise BadInput(f"{reference}: it returned {type(step).__name__}, expected transect.portable_step.Step")
    return step


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
