"""`transect conformance`: ONNX's operator tests under one runtime."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from transect.cli.output import Json, add_row, new_table, print_lines, print_table

# Named of each reason; all of them stand in verdicts.json.
_NAMED = 3


def conformance(
    runtime: Annotated[str, typer.Argument(help="a runtime that takes ONNX models, e.g. python")],
    provider: Annotated[str, typer.Option(help="execution provider: cpu, cuda")] = "cpu",
    only: Annotated[str, typer.Option(help="names of tests, e.g. 'test_conv_*'")] = "*",
    out: Annotated[Path | None, typer.Option(help="folder that keeps every verdict and what the runner said")] = None,
    as_json: Json = False,
) -> None:
    """Run ONNX's own operator tests through a runner; say how many pass, by opset.

    Exit code 1 when an output is wrong, or a test ended the runner or hung. A test that the runtime
    refuses, because it has no kernel for it or does not know its opset, counts as failed, and is no
    error. Example: transect conformance python --only 'test_conv_*'
    """
    from transect.cli.run_conformance import run_conformance
    from transect.domain.axes.export import ConformanceCell

    cell = ConformanceCell(runtime=runtime, provider=provider)
    with ExitStack() as stack:
        if out is None:
            out = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
        facts = run_conformance(cell, only, out)
    totals = Counter[str]()
    for row in facts["opsets"].values():
        totals.update(row)
    if as_json:
        print(json.dumps({"runtime": runtime, "provider": provider, **facts}, indent=1))
    else:
        _say(facts, totals)
    if any(totals[outcome] for outcome in ("wrong", "crash", "timeout")):
        raise typer.Exit(1)


def _say(facts: dict[str, Any], totals: Counter[str]) -> None:
    from transect.runtimes.conformance import OUTCOMES

    table = new_table("opset", "tests", *OUTCOMES)
    for opset, row in {**facts["opsets"], "all": totals}.items():
        counts = [str(row.get(outcome, 0)) for outcome in OUTCOMES]
        add_row(table, opset, str(sum(row.values())), *counts)
    print_table(table)
    if facts["not_passed"]:
        print_lines("")
        table = new_table("", "tests", "reason", "such as")
        for group in facts["not_passed"]:
            named = group["tests"][:_NAMED]
            add_row(table, group["outcome"], str(len(group["tests"])), group["reason"], named)
        print_table(table)
    prepared = facts["prepared"]
    print_lines(
        "",
        f"{totals['pass']} of {facts['tests']} tests pass; ONNX {prepared['onnx_version']} has "
        f"{prepared['tests']}, of which the runner contract expresses {prepared['expressible']}",
    )
