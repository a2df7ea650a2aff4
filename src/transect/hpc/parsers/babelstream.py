"""BabelStream and its older name GPU-STREAM: text of all versions, CSV, and the ports.

A rate is recomputed as main.cpp counts: copy, mul and dot move two arrays, add and triad three,
nstream four, in the shortest time. The Julia and Java ports print the whole of these bytes as
`sizeof`, and their --triad-only prints MB/s under the name GB/s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from transect.hpc.base import PARSERS, Parameter, Proof, Run, RunStatus
from transect.hpc.draft import Draft
from transect.hpc.parsers._babelstream_lines import KERNELS, Printed, Row, Table, usage_error
from transect.hpc.parsers._checks import whole
from transect.hpc.rules import RankParser
from transect.hpc.text import Line
from transect.hpc.values import UNITS, contradiction, number

_UNIT = r"[KMGT]i?B(?:ytes)?/s(?:ec)?"
_FIRST = ("copy", "mul", "add", "triad")
_WIDTHS = {"double": 8, "float": 4}


@dataclass(kw_only=True)
class _Output(Printed):
    def runs(self) -> Iterator[Run]:
        if self.refused or not self.tables or self.heads > len(self.tables):
            draft = _draft(self, None)
            if self.refused:
                draft.set_status(RunStatus.FAILED, self.refused)
            draft.stops = self.failures
            if draft.stop:
                draft.set_status(RunStatus.FAILED, draft.stop)
            draft.mark_cut("ends before the table of results")
            yield draft.run()
        for table in self.tables:
            yield _result(self, table)


@PARSERS.register("babelstream")
class BabelStream(RankParser):
    """Reads tables of rates and the complaints of the validation."""

    benchmark = "babelstream"
    description = "BabelStream, GPU-STREAM: text, CSV, the ports in other languages"
    validity_notes = Proof(
        identity="its name alone on a line, the head of its table or CSV, `Array size: 268.4 MB`, or the refusal of an option that only it has",
        success="a rate for each kernel that the version prints, and no complaint of its validation; rate and time agree with the bytes",
        failure="`Validation failed`, a rate that is no number or that its own sizes and time refute; a refused option is `failed`",
    )
    programs = (r"\w{1,12}-stream",)
    output = _Output
    most_open = 65_536
    start_patterns = (
        r"(?:BabelStream|GPU-STREAM)(?: Fortran)?[ \t]*(?=[\r\n]|\Z)",
        rf"Function[ \t]+{_UNIT}[ \t]+Min \(sec\)",
        r"function,(?:num_times,)?n_elements,sizeof,",
        r"Array size:[ \t]{1,12}\d{1,12}\.\d{1,9}[ \t]*[KMGT]i?B\b",
        r"Unrecognized argument '--",
    )
    also = start_patterns

    def matches(self, line: Line) -> bool:
        """Take a refused option only when no other benchmark has it."""
        text = line.text.strip()
        return not text.startswith("Unrecognized") or usage_error(text)


def _draft(output: _Output, table: Table | None) -> Draft:
    return output.draft(
        table.line if table else None,
        variant=str(output.facts.get("implementation", "")).split(";")[0].strip(),
        version=str(output.facts.get("version", "")),
        parameters=_parameters(output, table),
    )


def _parameters(output: _Output, table: Table | None) -> dict[str, Parameter]:
    parameters = {k: v for k, v in output.facts.items() if k != "version"}
    if "gpu" in parameters:
        parameters["device"] = parameters.pop("gpu")
    if output.program:
        parameters["program"] = output.program
    if table is not None:
        parameters["layout"] = table.layout
        for key, value in next(iter(table.rows.values()), Row()).facts.items():
            count = whole(value)
            if key != "total" and count is not None:
                parameters[key] = count
    return parameters


def _result(output: _Output, table: Table) -> Run:
    draft = _draft(output, table)
    for kernel, row in table.rows.items():
        if "cut" in row.facts and _contradicted(output, kernel, row):
            row.rate = ""  # half of a number
            del row.facts["cut"]
        unit = row.unit if row.unit in UNITS else "MB/s"
        draft.add_metric(kernel, row.rate, unit, registered="memory_bandwidth", phase=kernel)
        times = (("minimum", row.fastest), ("maximum", row.slowest), ("average", row.mean))
        if "total" in row.facts:
            times = (("total", row.fastest), ("maximum", ""), ("average", ""))
        for which, value in times:
            draft.add_metric(f"{kernel}_{which}_time", value, "s", phase=kernel)
    for phase, (time_s, rate, unit) in output.setup.items():
        draft.add_metric(f"{phase}_time", time_s, "s", phase=phase)
        draft.add_metric(f"{phase}_rate", rate, unit, phase=phase)
    _judge(draft, output, table)
    if len(output.tables) > 1:
        draft.warnings.append(f"{len(output.tables)} tables without rank labels: rows are matched in their order")
    draft.warnings += [
        f"the last line has no line end; its number may be cut: {row.facts['cut']}"
        for row in table.rows.values()
        if "cut" in row.facts
    ]
    return draft.run()


def _judge(draft: Draft, output: _Output, table: Table) -> None:
    draft.mark_invalid("; ".join(table.failures))
    for kernel, row in table.rows.items():
        if row.rate and number(row.rate) is None:
            draft.mark_invalid(f"{kernel}: the rate is {row.rate}")
    draft.mark_impossible()
    for kernel, row in table.rows.items():
        if draft.ok:
            draft.mark_invalid(_contradicted(output, kernel, row))
    if missing := _missing(output, table):
        draft.mark_incomplete(f"no row for {', '.join(missing)}")


def _missing(output: _Output, table: Table) -> list[str]:
    """Name the kernels that this version prints and this table lacks."""
    present = [kernel for kernel, row in table.rows.items() if row.rate]
    if not present:
        return ["any kernel"]
    if table.layout == "triad-only" or present in (["nstream"], ["triad"]):
        return []
    # Since 5.0 single kernels can be chosen; without that, the order of the table is fixed.
    kernels = str(output.facts.get("kernels", "")).lower()
    if kernels and kernels not in ("kernels", "all", "classic kernels", "all kernels"):
        return []
    version = number(str(output.facts.get("version", "")))
    dots = output.program != "GPU-STREAM" and (version is None or version >= 3.0)
    expected = [*_FIRST, *(["dot"] if dots else [])]
    return [kernel for kernel in expected if kernel not in present]


def _moved(output: _Output, kernel: str, row: Row) -> tuple[float, float] | None:
    """Return the least and the most bytes that one call moves, as far as the log tells."""
    elements, size = whole(row.facts.get("n_elements")), whole(row.facts.get("sizeof"))
    if elements and size:
        exact = float(KERNELS[kernel] * elements * size) if size <= 16 else float(size)
        return exact, exact
    width = _WIDTHS.get(str(output.facts.get("precision", "")).strip().lower())
    count = output.facts.get("number_of_elements")
    if isinstance(count, int) and width:
        return float(KERNELS[kernel] * count * width), float(KERNELS[kernel] * count * width)
    array, unit = output.facts.get("array_size"), output.facts.get("array_size_unit")
    if not isinstance(array, float) or not isinstance(unit, str) or array <= 0:
        return None
    version = number(str(output.facts.get("version", "")))
    if output.program == "GPU-STREAM" and version is not None and version < 2 and unit == "MB":
        unit = "MiB"  # these versions divide the size by 2^20, but the rate by 10^6
    factor = float(UNITS[f"{unit}/s"][1]) * KERNELS[kernel]
    return (array - 0.05) * factor, (array + 0.05) * factor  # one digit after the point


def _contradicted(output: _Output, kernel: str, row: Row) -> str | None:
    moved = _moved(output, kernel, row)
    if moved is None or not row.rate or not row.fastest or row.unit not in UNITS:
        return None
    times: Decimal | int = 1
    if "total" in row.facts:
        repeats = whole(row.facts.get("num_times")) or output.facts.get("num_times")
        if not isinstance(repeats, int) or repeats < 1:
            return None
        times = repeats
    factor = float(UNITS[row.unit][1]) / float(times)
    try:
        Decimal(row.fastest)
    except InvalidOperation:
        return None
    reason = None
    for amount in (math.fsum(moved) / 2, *moved):
        if (reason := contradiction(amount / factor, row.rate, row.fastest, row.unit)) is None:
            return None
    return f"{kernel}: {reason}"
