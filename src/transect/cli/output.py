"""Lines and tables on the terminal, and the options that commands share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from transect.domain.terminal import printable, say

# Of one folder; a run on a full disk damages all of its records.
_MAX_PROBLEMS = 10

Json = Annotated[bool, typer.Option("--json", help="print JSON for a script")]


def new_table(*columns: str) -> Table:
    """Return an empty table whose cells fold."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def add_row(table: Table, *cells: str | Sequence[str]) -> None:
    """Add a row. A cell is one line, or a sequence of lines; nothing in it counts as markup."""
    lines = [[cell] if isinstance(cell, str) else cell for cell in cells]
    table.add_row(*(Text("\n".join(map(printable, cell))) for cell in lines))


def print_table(table: Table) -> None:
    """Print a table. A pipe has no width: ids are not cut there."""
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def print_lines(*lines: str) -> None:
    """Print each of `lines` as one line on stdout, whatever characters are in it."""
    say(*lines, to=sys.stdout)


def print_problems(whose: str, problems: Sequence[object]) -> None:
    """Print what is wrong with a folder, a line for each problem; of many the first ones."""
    print_lines(*(f"{whose}: {problem}" for problem in problems[:_MAX_PROBLEMS]))
    if len(problems) > _MAX_PROBLEMS:
        more = len(problems) - _MAX_PROBLEMS
        print_lines(f"{whose}: and {more} more: --format json has all")
