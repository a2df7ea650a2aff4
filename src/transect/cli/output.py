"""Lines and tables on the terminal, and the options that commands share."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from transect.domain.terminal import printable, say

if TYPE_CHECKING:
    from transect.report.engine.collect import MadeSection

# Of one table of a comparison; a run on a full disk damages all of its records.
_MAX_ROWS = 60

Json = Annotated[bool, typer.Option("--json", help="print JSON for a script")]


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str | Sequence[str]]], most: int | None = None, more: int = 0
) -> None:
    """Print rows under their columns: at most so many, then how many more there are, beside `more` that are not here.

    A place is one line, or a sequence of lines; nothing in it counts as markup. A pipe has no width: ids are not cut
    there.
    """
    # Many a command prints no table.
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(*(Column(name, overflow="fold") for name in columns), box=None, pad_edge=False, header_style="bold")
    for row in rows[:most]:
        lines = [[place] if isinstance(place, str) else place for place in row]
        table.add_row(*(Text("\n".join(map(printable, place))) for place in lines))
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    if (left := len(rows[most:] if most else ()) + more) > 0:
        print_lines(f"and {left} more: --format json has all")


def print_lines(*lines: str) -> None:
    """Print each of `lines` as one line on stdout, whatever characters are in it."""
    say(*lines, to=sys.stdout)


def print_sections(sections: Iterable[MadeSection]) -> None:
    """Print what sections say: sentences and tables, of a long one the first rows."""
    from transect.report.comparison.page import texts
    from transect.report.engine.blocks import Prose, Table

    for section in sections:
        for block in section.body.blocks:
            if isinstance(block, Prose):
                print_lines(block.text)
            elif isinstance(block, Table):
                print_lines("", block.caption or block.folded or section.title)
                rows = [texts(values) for values in block.rows]
                print_table([column.title for column in block.columns], rows, _MAX_ROWS, block.more)
