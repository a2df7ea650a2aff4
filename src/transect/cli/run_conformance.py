"""ONNX's operator tests under one runtime without a study: for a person who works on a runner."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from transect.domain.axes.export import ConformanceCell, NodeTestsCell
from transect.domain.errors import MissingDependency, TransectError
from transect.domain.paths import ROOT
from transect.engine.build_environment import build
from transect.engine.run_block import end_on_signals
from transect.planning.expand import reason_to_skip
from transect.planning.stage import STAGES
from transect.runtimes import RUNTIMES
from transect.runtimes.conformance import check_runtime, conformance_result


def _environment(name: str, out: Path) -> str:
    """Return the interpreter of an environment, built where it is not there yet."""
    facts = build(name, out / f"{name}.log")
    if facts["status"] != "ok":
        raise MissingDependency(f"environment '{name}' {facts['message']}")
    return str(facts["python"])


def _prepare(out: Path) -> dict[str, Any]:
    """Make the tests anew, in the environment that has `onnx`; return what is said of them."""
    stage = STAGES.get("nodetests")
    python = _environment(stage.environment(NodeTestsCell()), out)
    command = [python, "-m", "transect.payloads", stage.payload, "--out", str(out)]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TransectError(f"the tests could not be made: {done.stderr.strip()[-500:]}")
    details: dict[str, Any] = json.loads((out / "result.json").read_text())["details"]
    return details


def run_conformance(cell: ConformanceCell, only: str, out: Path) -> dict[str, Any]:
    """Run the tests whose name matches `only`; return the result with what is said of all tests.

    What the runner wrote stays in `out`. Raises BadInput for an unknown runtime or pattern, and
    MissingDependency where the runtime cannot run here.
    """
    end_on_signals()
    check_runtime(cell.runtime, "RUNTIME")
    reason = reason_to_skip(cell)
    if reason is not None:
        raise MissingDependency(f"runtime '{cell.runtime}' on {cell.provider}: {reason}")
    out.mkdir(parents=True, exist_ok=True)
    tests = out / "tests"
    tests.mkdir(exist_ok=True)
    prepared = _prepare(tests)
    python = _environment(RUNTIMES.get(cell.runtime).environment, out)
    found = conformance_result(cell, tests, out, python, only=only)
    if found["status"] == "skipped":
        raise MissingDependency(f"runtime '{cell.runtime}' on {cell.provider}: {found['message']}")
    if found["status"] != "ok":
        raise TransectError(f"runtime '{cell.runtime}': {found['message']}")
    return {**found["details"], "prepared": prepared}
