"""Tables on the terminal, and the options that commands share."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

__all__ = ["Json", "new_table", "print_table"]

Json = Annotated[bool, typer.Option("--json", help="print JSON for a script")]


def new_table(*columns: str) -> Table:
    """Return an empty table whose cells fold."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def print_table(table: Table) -> None:
    """Print a table. A pipe has no width: ids are not cut there."""
    Console(width=None if sys.stdout.isatty() else 200).print(table)
