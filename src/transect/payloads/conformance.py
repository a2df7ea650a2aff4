"""ONNX's operator tests under one runtime, in a process of the driver, which starts the runner.

Leaves `result.json` and, beside it, every test's verdict, the runner's own record and its output.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.axes.export import ConformanceCell
from transect.runtimes.conformance import conformance_result


def conformance(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Run the tests of one cell; every test that was run is reported, whatever came of it."""
    cell = ConformanceCell.of(**spec["cell"])
    program = spec["run"]["programs"]["runner"]
    return conformance_result(cell, folders["tests"], out, program["python"], only=spec["only"], wrap=program["wrap"])
