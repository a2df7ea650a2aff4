"""`transect query`: SQL over the records of many studies."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from transect.cli.output import Json, print_table
from transect.domain.errors import BadInput
from transect.domain.terminal import printable, say


def query(
    sql: Annotated[str, typer.Argument(help="one SELECT over the table `records`")],
    folders: Annotated[list[Path], typer.Argument(help="result folders, or folders that hold some at any depth")],
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="print CSV for a spreadsheet")] = False,
) -> None:
    """Ask many studies at once, by SQL over the records.parquet that their reports write.

    The table `records` has a row per record and metric; the column `study_folder` says which folder a row is from, and
    docs/query.md has the others. Results are read, never changed. Example:
    transect query "SELECT framework, median(value) FROM records WHERE metric = 'step_time' GROUP BY ALL" results
    """
    from transect.analysis.records_query import ask, copies, find_tables

    if as_json and as_csv:
        raise BadInput("--json and --csv: expected one of them")
    tables, without = find_tables(folders)
    answer = ask(sql, tables)
    say(
        *(f"{study}: is left out, as no report of it was made: `transect report` writes its table" for study in without)
    )
    say(
        *(
            f"{copy}: the same as {first}; both are counted, and differ in study_folder"
            for copy, first in copies(tables)
        )
    )
    if as_json:
        if twice := [name for name, times in Counter(answer.columns).items() if times > 1]:
            raise BadInput(f"--json: several columns are called {', '.join(twice)}: give each its own name by AS")
        rows = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
        print(json.dumps(rows, indent=1))
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([_shown(value) for value in row] for row in (answer.columns, *answer.rows))
    else:
        print_table(answer.columns, [[_words(value) for value in row] for row in answer.rows])


def _plain(value: Any) -> Any:
    """Return what JSON has for a value; what it has none for, as text."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return value if value is None or isinstance(value, str | int) else str(value)


def _shown(value: Any) -> Any:
    """Return what CSV has for a value, a list as JSON; a terminal is shown no control character."""
    if isinstance(value, list | tuple | dict):
        value = json.dumps(_plain(value), ensure_ascii=False)
    return printable(value) if isinstance(value, str) and sys.stdout.isatty() else value


def _words(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
