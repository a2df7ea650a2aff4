"""nvbandwidth: copies between host and GPUs, a matrix for each test case; text, and JSON (`-j`).

GB/s count 10^9 bytes. The sum of a matrix is printed beneath it, and recomputed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Parser, Proof, Run, Series
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._json_block import read_object
from transect.hpc.text import excerpt
from transect.hpc.values import NUMBER, last_digit, number

_CASE = r"[a-z][a-z_0-9]{2,80}_(?:ce|sm|copy|tma)"
# After the first of its lines any name is one of a case.
_RUNNING = re.compile(r"Running ([a-z]\w{2,80})\.\s*$")
_TITLE = re.compile(r"\S[^\n]{2,80}\((GB/s|ns)\)\s*$")
_ROW = re.compile(rf"(\S{{1,40}})((?:\s+(?:{NUMBER}|N/A))+)\s*$")
_SUM = re.compile(rf"SUM ([a-z]\w{{2,80}}) ({NUMBER})\s*$")
_FACT = re.compile(
    r"(nvbandwidth Version|CUDA Runtime Version|CUDA Driver Version|Driver Version): *(\S{1,40})|Device 0: ([^(\n]{2,80})"
)
_ERROR = re.compile(r"\[?(?:CUDA|NVML|ERROR)[\w_]*\]? ?[^\n]{0,40}(?:in expression|[Ee]rror)|ERROR:")


@PARSERS.register("nvbandwidth")
class Nvbandwidth(Parser):
    """Reads a run per test case; its result is the sum over its matrix."""

    benchmark = "nvbandwidth"
    description = "nvbandwidth: copies between host and GPUs, text and JSON"
    validity_notes = Proof(
        identity="`nvbandwidth Version`, `Running host_to_device_memcpy_ce.`, JSON that begins with `nvbandwidth`",
        success="the sum of a test case",
        failure="a sum that its matrix refutes; a test case whose status is an error",
    )
    programs = (r"nvbandwidth",)
    start_patterns = (
        r"nvbandwidth Version: ",
        rf"Running {_CASE}\.[ \t\r]*(?:\n|\Z)",
        r'\{?[ \t]*"nvbandwidth"[ \t]?:[ \t]*(?:\{|(?=[\r\n]|\Z))',
    )
    line_patterns = None

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per test case that was not waived."""
        if block.first.text.lstrip().startswith(("{", '"')):
            yield from _json(block)
            return
        draft: Draft | None = None
        facts: dict[str, str] = {}
        cells: list[str] = []
        for line in block:
            text = line.text.strip()
            if (running := _RUNNING.match(text)) is not None:
                if draft is not None:
                    yield _run(draft, cells, None)
                draft, cells = _draft(block, line.number, running[1], facts), []
            elif draft is None:
                for name, value, device in _FACT.findall(text):
                    facts[name or "device"] = (value or device).strip()
            elif line.cut:
                continue  # a number may have lost digits
            elif (total := _SUM.match(text)) is not None:
                yield _run(draft, cells, total[2] if total[1] == draft.variant else None)
                draft = None
            elif text.startswith("Waived") and not cells:
                draft = None
            elif (title := _TITLE.match(text)) is not None:
                draft.parameters["unit"] = title[1]
            elif (row := _ROW.match(text)) is not None and "unit" in draft.parameters:
                # The first row names the columns.
                cells = [*cells, *row[2].split()] if draft.parameters.get("columns") else cells
                draft.parameters["columns"] = len(row[2].split()) + (not cells)
            elif _ERROR.match(text):
                draft.stops.append(excerpt(text))
        if draft is not None:
            yield _run(draft, cells, None)


def _draft(block: Block, line: int, case: str, facts: dict[str, str]) -> Draft:
    draft = Draft(block=block, line=line, variant=case)
    draft.version = facts.get("nvbandwidth Version", "").removeprefix("v")
    draft.parameters |= {
        key.lower().replace(" ", "_"): value for key, value in facts.items() if key != "nvbandwidth Version"
    }
    return draft


def _run(draft: Draft, cells: Sequence[str], total: str | None) -> Run:
    unit = str(draft.parameters.pop("unit", "GB/s"))
    if columns := draft.parameters.pop("columns", None):
        draft.parameters["gpus"] = columns  # over which its sum is taken
    values = [number(cell) for cell in cells]
    known = [value for value in values if value is not None]
    if known:
        draft.samples["matrix"] = Series(unit=unit, values=known)
    if total is None:
        draft.mark_incomplete("no sum of its matrix")
        return draft.run()
    higher = unit == "GB/s"
    # A copy within one device goes over no link.
    linked = higher and "_local_" not in draft.variant
    draft.add_metric(
        "sum",
        total,
        unit,
        Direction.HIGHER if higher else Direction.LOWER,
        registered="link_bandwidth" if linked else None,
    )
    ends = [last_digit(cell) for cell in cells if number(cell) is not None]
    low, high = sum(bound for bound, _ in ends), sum(bound for _, bound in ends)
    printed = last_digit(total)
    if known and not (printed[1] >= low * 0.999 and printed[0] <= high * 1.001):
        draft.mark_invalid(f"the log prints a sum of {total} {unit}, but its matrix gives {sum(known):.6g} {unit}")
    draft.mark_impossible()
    return draft.run()


def _json(block: Block) -> Iterator[Run]:
    line = block.first.number
    whole = (read_object(block) or {}).get("nvbandwidth")
    results: dict[str, Any] = whole if isinstance(whole, dict) else {}
    cases = results.get("testcases")
    if not isinstance(cases, list):
        draft = Draft(block=block, line=line)
        draft.mark_incomplete("its JSON is not whole")
        yield draft.run()
        return
    facts = {name: results.get(name) for name in ("CUDA Runtime Version", "Driver Version")}
    for case in (case for case in cases if isinstance(case, dict) and case.get("status") != "Waived"):
        draft = _draft(block, line, str(case.get("name")), {k: str(v) for k, v in facts.items() if v})
        draft.version = str(results.get("git_version") or "")
        draft.parameters["unit"] = "ns" if "(ns)" in str(case.get("bandwidth_description")) else "GB/s"
        if case.get("status") != "Passed":
            draft.stops.append(f"status {case.get('status')}: {excerpt(str(case.get('error', '')))}")
        matrix: Any = case.get("bandwidth_matrix")
        cells = [str(cell) for row in matrix for cell in row] if isinstance(matrix, list) else []
        draft.parameters["columns"] = len(matrix[0]) if cells else 0
        total = case.get("sum") if case.get("status") == "Passed" else None
        yield _run(draft, cells, None if total is None else str(total))
