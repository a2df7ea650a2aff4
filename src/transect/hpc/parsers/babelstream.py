"""BabelStream and its older name GPU-STREAM: text of all versions, CSV, and the ports.

A rate is recomputed as main.cpp counts: copy, mul and dot move two arrays, add and triad three,
nstream four, in the shortest time. The Julia and Java ports print the whole of these bytes as
`sizeof`, and their --triad-only prints MB/s under the name GB/s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, LogMetric, Parameter, Parser, Run, RunStatus
from transect.hpc.block import Block
from transect.hpc.parsers._babelstream import (
    KERNELS,
    MOST_TABLES,
    Output,
    Row,
    Table,
    head,
    read,
    usage_error,
)
from transect.hpc.parsers._compute import first_impossible, whole
from transect.hpc.text import Line
from transect.hpc.values import UNITS, contradiction, log_metric, number

__all__ = ["BabelStream"]

_UNIT = r"[KMGT]i?B(?:ytes)?/s(?:ec)?"
_FIRST = ("copy", "mul", "add", "triad")
_MOST_RANKS = 65_536
_WIDTHS = {"double": 8, "float": 4}


@PARSERS.register("babelstream")
class BabelStream(Parser):
    """Reads tables of rates and the complaints of the validation."""

    benchmark = "babelstream"
    description = "BabelStream, GPU-STREAM: text, CSV, the ports in other languages"
    programs = (r"\w{1,12}-stream",)
    starts = (
        r"(?:BabelStream|GPU-STREAM)(?: Fortran)?[ \t]*(?=[\r\n]|\Z)",
        rf"Function[ \t]+{_UNIT}[ \t]+Min \(sec\)",
        r"function,(?:num_times,)?n_elements,sizeof,",
        r"Array size:[ \t]{1,12}\d{1,12}\.\d{1,9}[ \t]*[KMGT]i?B\b",
        r"Unrecognized argument '--",
    )
    wants = (
        *starts,
        r"(?:Copy|Mul|Add|Triad|Dot|Nstream)(?:[ \t]|,|:)",
        r"(?:Version|Implementation|Precision|Driver|Memory|Number of elements|GPU):",
        r"Total size:",
        r"Running ",
        r"Using [^\n]{1,40}device",
        r"(?:Init|Read):",
        r"Validation failed",
        r"(?:Min|Max|Avg|Bandwidth) \(",
        r"Runtime \(seconds\):",
    )

    def sniff(self, line: Line) -> bool:
        """Take a refused option only when no other benchmark has it."""
        text = line.text.strip()
        return not text.startswith("Unrecognized") or usage_error(text)

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per table. Tables of labelled ranks are kept apart."""
        outputs: dict[int | None, Output] = {}
        for line in block:
            rank = line.rank if len(outputs) < _MOST_RANKS or line.rank in outputs else None
            output = outputs.get(rank)
            text = line.text.strip()
            if output is None or _next(output, text) or len(output.tables) >= MOST_TABLES:
                if output is not None:
                    yield from _close(block, output)
                output = outputs[rank] = Output(line=line.number)
            read(output, line, text)
        for output in outputs.values():
            yield from _close(block, output)


def _next(output: Output, text: str) -> bool:
    """Tell whether a line begins the next run: a head or, in the ports without, a size."""
    if head(text) or usage_error(text):
        begun = any(t.rows for t in output.tables)
        return bool(output.refused) or output.whole() or (begun and output.heads <= 1)
    if text.startswith("GPU:") or (text.startswith("Array size:") and not output.heads):
        return any(t.rows for t in output.tables)
    return text.startswith("function,") and output.whole()


def _close(block: Block, output: Output) -> Iterator[Run]:
    missing = output.heads - len(output.tables)
    if output.refused:
        yield _empty(block, output, RunStatus.FAILED, output.refused)
    elif not output.tables or missing > 0:
        trouble = "; ".join([*output.failures, *filter(None, [block.take_trouble()])])
        status = RunStatus.FAILED if trouble else RunStatus.TRUNCATED
        reason = trouble or f"ends before the table of results, with: {block.last_words()}"
        yield _empty(block, output, status, reason)
    for table in output.tables:
        yield _result(block, output, table)


def _empty(block: Block, output: Output, status: RunStatus, reason: str) -> Run:
    return Run(
        file=block.file, line=output.line, benchmark="babelstream", variant=_variant(output),
        version=str(output.facts.get("version", "")), parameters=_parameters(output, None),
        status=status, reason=reason,
    )  # fmt: skip


def _variant(output: Output) -> str:
    return str(output.facts.get("implementation", "")).split(";")[0].strip()


def _parameters(output: Output, table: Table | None) -> dict[str, Parameter]:
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


def _result(block: Block, output: Output, table: Table) -> Run:
    readings: list[LogMetric | None] = []
    for kernel, row in table.rows.items():
        if "cut" in row.facts and _contradicted(output, kernel, row):
            row.rate = ""  # half of a number
            del row.facts["cut"]
        unit = row.unit if row.unit in UNITS else "MB/s"
        readings.append(
            log_metric(
                kernel, row.rate, unit, Direction.HIGHER,
                registered="memory_bandwidth", phase=kernel,
            )
        )  # fmt: skip
        times = (("minimum", row.fastest), ("maximum", row.slowest), ("average", row.mean))
        if "total" in row.facts:
            times = (("total", row.fastest), ("maximum", ""), ("average", ""))
        for which, value in times:
            readings.append(
                log_metric(f"{kernel}_{which}_time", value, "s", Direction.LOWER, phase=kernel)
            )
    for phase, (time_s, rate, unit) in output.setup.items():
        readings.append(log_metric(f"{phase}_time", time_s, "s", Direction.LOWER, phase=phase))
        readings.append(log_metric(f"{phase}_rate", rate, unit, Direction.HIGHER, phase=phase))
    metrics = [reading for reading in readings if reading is not None]
    status, reason = _judge(block, output, table, metrics)
    warnings = []
    if len(output.tables) > 1:
        warnings.append(
            f"{len(output.tables)} tables without rank labels: rows are matched in their order"
        )
    warnings += [
        f"the last line has no line end; its number may be cut: {row.facts['cut']}"
        for row in table.rows.values()
        if "cut" in row.facts
    ]
    return Run(
        file=block.file, line=table.line, benchmark="babelstream", variant=_variant(output),
        version=str(output.facts.get("version", "")), parameters=_parameters(output, table),
        metrics=metrics, status=status, reason=reason, warnings=warnings,
    )  # fmt: skip


def _judge(
    block: Block, output: Output, table: Table, metrics: list[LogMetric]
) -> tuple[RunStatus, str]:
    if table.failures:
        return RunStatus.INVALID, "; ".join(table.failures)
    for kernel, row in table.rows.items():
        if row.rate and number(row.rate) is None:
            return RunStatus.INVALID, f"{kernel}: the rate is {row.rate}"
    why = first_impossible(metrics)
    for kernel, row in table.rows.items():
        why = why or _contradicted(output, kernel, row)
    if why is not None:
        return RunStatus.INVALID, why
    if missing := _missing(output, table):
        trouble = block.take_trouble()
        end = trouble or f"the log ends with: {block.last_words()}"
        what = f"no row for {', '.join(missing)}"
        return (RunStatus.FAILED if trouble else RunStatus.TRUNCATED), f"{what}: {end}"
    return RunStatus.OK, ""


def _missing(output: Output, table: Table) -> list[str]:
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


def _moved(output: Output, kernel: str, row: Row) -> tuple[float, float] | None:
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


def _contradicted(output: Output, kernel: str, row: Row) -> str | None:
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
    said = None
    for one in (math.fsum(moved) / 2, *moved):
        if (said := contradiction(one / factor, row.rate, row.fastest, row.unit)) is None:
            return None
    return f"{kernel}: {said}"
