"""mdtest 1.x to 4.x: rates of creating, looking at and removing files and directories.

The header of a table says whether it holds rates or times, but not reliably: mdtest 4.1 prints
its times under `ops/sec` or `ms/op`. A second table of the same run is the table of times
(mdtest.c prints the rates first), and rate times time must be the number of items.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, LogMetric, Parser, Proof, Run, Series
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._mdtest import COLUMNS, Output, Table, broken, contradicted, unit_of, wrong
from transect.hpc.rules import searched
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, log_metric, number

_OPERATION = (
    r"(?:Directory (?:creation|stat|read|removal|rename)|File (?:creation|stat|read|removal)"
    r"|Tree (?:creation|removal))"
)
_BANNER = re.compile(
    r"mdtest-(\S{1,40}) was launched with (\d{1,10}) total task\(?s?\)?"
    r"(?: on (\d{1,9}) node)?"
)
_HEAD = re.compile(r"SUMMARY(?: (rate|time))?:?(?: \(in ([^)\n]{1,20})\):?)?:? \(of (\d{1,9}) iterations?\)")
_ROW = re.compile(rf"({_OPERATION})[ \t]*:?[ \t]+(\S.{{0,400}})$")
_ITEMS = re.compile(r"(\d{1,10}) tasks, (\d{1,18}) (files?(?:/directories)?|directories)")
_ONCE = re.compile(rf"V-1:.{{0,60}}?({_OPERATION})[ \t]{{0,12}}: +({NUMBER}) sec, +({NUMBER}) ops/sec")
_COMMAND = re.compile(r"Command line used: (\S.{0,2000})")
_TIMES_ONLY = re.compile(r"[\s'\"]-Z(?:[\s'\"]|$)")
_FAILED = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d: Process|(?:ior |mdtest )?ERROR\b|FAIL(?:ED|URE)?\b")
_MOST_SAMPLES = 1000
_LAST = "Tree removal"  # closes every table


@PARSERS.register("mdtest")
class Mdtest(Parser):
    """Reads the summary tables, never the lines of single iterations."""

    benchmark = "mdtest"
    description = "mdtest 1.x to 4.x: rates of operations on files and directories"
    proof = Proof(
        identity="`mdtest-3.4.0 was launched with`, `-- started at`, `SUMMARY rate`",
        success="a table of results down to its last row; the mean lies between least and most, rate times time is the number of items",
        failure="data that could not be verified, a row that contradicts itself, a cell that is no number",
    )
    programs = (r"mdtest",)
    starts = (
        r"mdtest-[\w.+\-]{1,40} was launched with \d",
        r"-- started at \d\d/\d\d/\d{4} \d\d:\d\d:\d\d --",
        r"SUMMARY(?: rate| time)?:?(?: \(in [^)\n]{1,20}\):?)?:? \(of \d{1,9} iteration",
    )
    wants = (
        *searched(_BANNER, _HEAD, _ROW, _ITEMS, _ONCE, _COMMAND, _FAILED),
        r"-- (?:started|finished) at ",
        r"Path[ \t]*:",
    )

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield one run for each start of the program."""
        output = Output(line=block.first.number)
        for line in block:
            text = line.text.strip()
            if _begins_again(output, text):
                yield self._close(block, output)
                output = output.next(line.number, same=_again_with_other_tasks(text))
            _read(output, line, text)
            if output.finished:
                yield self._close(block, output)
                return
        yield self._close(block, output)

    def _close(self, block: Block, output: Output) -> Run:
        rates, times = output.table("rate"), output.table("time")
        draft = Draft(
            block=block,
            line=output.line,
            version=output.version,
            variant="times" if rates is None and times else "rates and times" if times else "rates",
            parameters=dict(output.facts),
            metrics=[*_metrics(rates, output), *_metrics(times, output)],
            samples={op: Series(unit="1/s", values=rows) for op, rows in output.samples.items()},
            warnings=[excerpt(error) for error in output.errors[:5]],
            stops=[*map(excerpt, output.errors[:2]), block.take_trouble()],
        )
        _judge(draft, output)
        whole = rates or times
        if whole is not None:
            draft.parameters["iterations"] = whole.iterations
            idle = [op for op, row in whole.rows.items() if not number(row[0])]
            if idle:
                draft.parameters["not_run"] = idle
        if draft.ok and not output.finished:
            words = block.last_words()
            draft.warnings.append(f"no '-- finished at': the log ends with: {words}")
        if times is not None and times.label and times.label != "s":
            draft.warnings.append(f"the table of times is labelled '{times.label}'")
        return draft.run()


def _begins_again(output: Output, text: str) -> bool:
    if text.startswith("-- started at "):
        return output.begun()
    if _BANNER.match(text):
        return output.headed or bool(output.tables)
    if _ITEMS.match(text):
        return bool(output.tables)
    if (match := _HEAD.match(text)) is None or not output.tables:
        return False
    # Only 4.1 calls its times rates, and then it prints a unit.
    again = match[1] != "time" and not match[2]
    return again or output.table("time") is not None or len(output.tables) >= 2


def _again_with_other_tasks(text: str) -> bool:
    """Tell whether a line begins another number of tasks (-f, -l) within one start."""
    return _ITEMS.match(text) is not None


def _read(output: Output, line: Line, text: str) -> None:
    if (row := _ROW.match(text)) is not None:
        _read_row(output, line, row[1], row[2].split())
    elif (match := _HEAD.match(text)) is not None:
        kind = match[1] or "rate"
        if output.table("rate") is not None or _TIMES_ONLY.search(str(output.facts.get("command", ""))):
            kind = "time"
        label = match[2] or ("" if match[1] != "time" else "s")
        output.tables.append(Table(line=line.number, kind=kind, label=label, iterations=int(match[3])))
    elif (match := _ONCE.match(text)) is not None:
        values = output.samples.setdefault(match[1], [])
        rate = number(match[3])
        if rate and len(values) < _MOST_SAMPLES:
            values.append(rate)
    elif text.startswith("-- finished at "):
        output.finished = True
    elif text.startswith("ERROR: verifying the data"):
        output.unverified = excerpt(text)
    elif _FAILED.match(text):
        if len(output.errors) < 5:
            output.errors.append(text[:400])
    else:
        _read_fact(output, text)


def _read_fact(output: Output, text: str) -> None:
    if (match := _BANNER.match(text)) is not None:
        output.headed = True
        output.version = match[1]
        output.facts["tasks"] = int(match[2])
        if match[3]:
            output.facts["nodes"] = int(match[3])
    elif (match := _ITEMS.match(text)) is not None:
        output.items = int(match[2])
        output.facts["tasks"] = int(match[1])
        output.facts["files" if match[3].startswith("file") else "directories"] = output.items
    elif (match := _COMMAND.match(text)) is not None:
        output.facts["command"] = excerpt(match[1], 400)
    elif text.startswith("Path") and ":" in text:
        output.facts["path"] = excerpt(text.partition(":")[2].strip())


def _read_row(output: Output, line: Line, operation: str, cells: list[str]) -> None:
    if not output.tables or operation in output.tables[-1].rows:
        return
    # With statistics of the ranks, their maximum, minimum and mean stand in front.
    cells = cells[3:] if len(cells) == 7 else cells
    if len(cells) != 4 or (line.cut and not re.search(r"\.\d{3}$", cells[3])):
        return
    output.tables[-1].rows[operation] = tuple(cells)


def _metrics(table: Table | None, output: Output) -> list[LogMetric]:
    if table is None:
        return []
    metrics: list[LogMetric] = []
    unit = unit_of(table, output)
    rates = output.table("rate")
    for operation, row in table.rows.items():
        known = rates.rows.get(operation) if rates is not None else None
        if not number((known or row)[0]) and not broken((known or row)[0]):
            continue  # 0.000 or -: it did not run
        for column, printed in zip(COLUMNS, row, strict=True):
            base = {"1/s": "metadata_rate", "s": "benchmark_time"}.get(unit)
            metric = log_metric(
                f"{table.kind}_{column}",
                printed,
                unit,
                Direction.NEUTRAL
                if column == "stddev"
                else Direction.HIGHER
                if table.kind == "rate"
                else Direction.LOWER,
                registered=base if column in ("max", "mean") else None,
                phase=operation,
            )
            if metric is not None:
                metrics.append(metric)
    return metrics


def _judge(draft: Draft, output: Output) -> None:
    whole = output.table("rate") or output.table("time")
    if whole is None:
        draft.ends("before its table of results")
    elif any(_LAST not in table.rows for table in output.tables):
        draft.ends("within its table")
    draft.refuse(output.unverified)
    for table in output.tables:
        for operation, row in table.rows.items():
            if draft.ok:
                draft.refuse(wrong(table, operation, row, int(str(output.facts.get("tasks", 0)))))
    if draft.ok:
        draft.refuse(contradicted(output))
    draft.refuse_impossible(_metrics(output.table("rate"), output))
    if whole is not None and not any(number(row[0]) for row in whole.rows.values()):
        draft.empty("no operation ran: every row of the table is 0")
