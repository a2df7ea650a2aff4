"""`transect conformance`: ONNX's operator tests under one runtime."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from transect.cli.output import Json, print_lines, print_table
from transect.domain.errors import MissingDependency, TransectError

# Named of each reason; all of them stand in verdicts.json.
_NAMED = 3


def conformance(
    runtime: Annotated[str, typer.Argument(help="a runtime that takes ONNX models, e.g. python")],
    provider: Annotated[str, typer.Option(help="execution provider: cpu, cuda")] = "cpu",
    only: Annotated[str, typer.Option(help="names of tests, e.g. 'test_conv_*'")] = "*",
    out: Annotated[Path | None, typer.Option(help="folder for every verdict and the runner's output")] = None,
    as_json: Json = False,
) -> None:
    """Run ONNX's own operator tests through a runner; say how many pass, by opset.

    Exit code 1 when an output is wrong, or a test ended the runner or hung. A test that the runtime
    refuses, because it has no kernel for it or does not know its opset, counts as failed, and is no
    error. Example: transect conformance python --only 'test_conv_*'
    """
    with ExitStack() as stack:
        if out is None:
            out = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
        facts = _run(runtime, provider, only, out)
    totals = Counter[str]()
    for row in facts["opsets"].values():
        totals.update(row)
    if as_json:
        print(json.dumps({"runtime": runtime, "provider": provider, **facts}, indent=1))
    else:
        _say(facts, totals)
    if any(totals[outcome] for outcome in ("wrong", "crash", "timeout")):
        raise typer.Exit(1)


def _run(runtime: str, provider: str, only: str, out: Path) -> dict[str, Any]:
    """Run the tests whose name matches `only`; what the runner wrote stays in `out`."""
    from transect.domain.axes.export import ConformanceCell, NodeTestsCell
    from transect.domain.paths import PYTHONPATH
    from transect.engine.build_environment import build
    from transect.engine.run_block import end_on_signals
    from transect.planning.expand import reason_to_skip
    from transect.planning.stage import STAGES
    from transect.runtimes import RUNTIMES
    from transect.runtimes.conformance import check_runtime, conformance_result

    def environment(name: str, log: Path) -> str:
        facts = build(name, log / f"{name}.log")
        if facts["status"] != "ok":
            raise MissingDependency(f"environment '{name}' {facts['message']}")
        return str(facts["python"])

    end_on_signals()
    cell = ConformanceCell(runtime=runtime, provider=provider)
    check_runtime(runtime, "RUNTIME")
    if (reason := reason_to_skip(cell)) is not None:
        raise MissingDependency(f"runtime '{runtime}' on {provider}: {reason}")
    tests = out / "tests"
    tests.mkdir(parents=True, exist_ok=True)
    # The tests are made in the environment that has `onnx`.
    stage = STAGES.get("onnx-node-tests")
    python = environment(stage.environment(NodeTestsCell()), tests)
    command = [python, "-m", "transect.payloads", stage.payload, "--out", str(tests)]
    variables = os.environ | {"PYTHONPATH": PYTHONPATH}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TransectError(f"the tests could not be made: {done.stderr.strip()[-500:]}")
    prepared = json.loads((tests / "result.json").read_text())["details"]
    python = environment(RUNTIMES.get(runtime).environment, out)
    found = conformance_result(cell, tests, out, python, only=only)
    if found["status"] == "skipped":
        raise MissingDependency(f"runtime '{runtime}' on {provider}: {found['message']}")
    if found["status"] != "ok":
        raise TransectError(f"runtime '{runtime}': {found['message']}")
    return {**found["details"], "prepared": prepared}


def _say(facts: dict[str, Any], totals: Counter[str]) -> None:
    from transect.runtimes.conformance import OUTCOMES

    opsets = [
        (opset, str(sum(row.values())), *(str(row.get(outcome, 0)) for outcome in OUTCOMES))
        for opset, row in {**facts["opsets"], "all": totals}.items()
    ]
    print_table(("opset", "tests", *OUTCOMES), opsets)
    if facts["not_passed"]:
        print_lines("")
        groups = [
            (group["outcome"], str(len(group["tests"])), group["reason"], group["tests"][:_NAMED])
            for group in facts["not_passed"]
        ]
        print_table(("", "tests", "reason", "such as"), groups)
    prepared = facts["prepared"]
    print_lines(
        "",
        f"{totals['pass']} of {facts['tests']} tests pass; ONNX {prepared['onnx_version']} has "
        f"{prepared['tests']}, of which the runner contract expresses {prepared['expressible']}",
    )
