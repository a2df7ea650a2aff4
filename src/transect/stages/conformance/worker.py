"""ONNX's operator tests under one runtime.

`python -m transect.stages.conformance.worker --spec FILE --tests DIR --out DIR --python FILE` runs in
the driver's environment and starts the runner. Leaves `result.json` and, beside it, every test's
verdict, the runner's own record and what it said.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from transect.domain.axes.export import ConformanceCell
from transect.domain.cell import Cell
from transect.domain.errors import FAULTS
from transect.onnx_models.results import write_fault, write_result
from transect.runtimes.conformance import conformance_result


def main(arguments: list[str] | None = None) -> int:
    """Run one conformance cell; exit code 0 when every test was run, whatever came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--tests", type=Path, required=True, help="folder of a nodetests cell")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python", required=True, help="interpreter of the environment")
    parser.add_argument("--wrap", default="[]", help="JSON list put before the runner: modules, a container")
    given = parser.parse_args(arguments)
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        spec = json.loads(given.spec.read_text())
        cell = Cell.of(**spec["cell"])
        assert isinstance(cell, ConformanceCell)
        found = conformance_result(
            cell, given.tests, given.out, given.python, only=spec["only"], wrap=json.loads(given.wrap)
        )
        write_result(given.out, found)
    except FAULTS as error:
        return write_fault(given.out, error)
    return 1 if found["status"] == "failed" else 0


if __name__ == "__main__":
    sys.exit(main())
