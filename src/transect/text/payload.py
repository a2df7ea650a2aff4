"""What the workers of the text pipeline's stages share: their command line and their result."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from transect.domain.errors import FAULTS
from transect.onnx_models.results import result, write_fault, write_result

Details = dict[str, Any]


def run(
    what: str,
    roles: Sequence[str],
    work: Callable[[dict[str, Any], dict[str, Path], Path], Details],
    libraries: Iterable[str],
    arguments: list[str] | None = None,
) -> int:
    """Do the work of one cell; return the exit code, 0 when its result says that it is ok.

    `--spec FILE --ROLE FOLDER … --out FOLDER`: `work` takes the spec, the folders of the input cells
    by role, and its own, and returns the details of its record.
    """
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--spec", type=Path, required=True)
    for role in roles:
        parser.add_argument(f"--{role}", type=Path, required=True, help=f"folder of a {role} cell")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    try:
        spec = json.loads(given.spec.read_text())
        details = work(spec, {role: getattr(given, role) for role in roles}, given.out)
        versions = {name: version(name) for name in libraries}
        write_result(given.out, result(details=details, libraries=versions))
    except FAULTS as error:
        return write_fault(given.out, error)
    return 0
