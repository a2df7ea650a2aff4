"""What a page has room for: with too many rows in all, the long tables end sooner and say so.

A page of a study of 100,000 cells has to open like one of a hundred. Each table is bounded by itself;
this bounds all of them together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from transect.report.blocks import Block, Body, Charts, Failure, Table
from transect.report.making import MadeSection

__all__ = ["LEAST_ROWS", "MOST_PAGE_ROWS", "fitted"]

# Rows of all tables of a page: some 400 bytes each, with what the filter needs to know of them.
MOST_PAGE_ROWS = 5000
# Rows that every table keeps.
LEAST_ROWS = 8

_NOTED = re.compile(r"^(\d+) more rows? (?:are|is) not shown here")


def fitted(sections: Sequence[MadeSection], most: int = MOST_PAGE_ROWS) -> list[MadeSection]:
    """Return the sections with at most so many rows in all: the longest tables lose theirs first.

    Every table keeps `LEAST_ROWS`, and says how many it left out.
    """
    lengths = [len(one.rows) for made in sections for one in _tables(made.body)]
    if sum(lengths) <= most:
        return list(sections)
    least, longest = LEAST_ROWS, max(lengths)
    while least < longest:
        middle = (least + longest + 1) // 2
        if sum(min(length, middle) for length in lengths) <= most:
            least = middle
        else:
            longest = middle - 1
    return [
        replace(made, body=_changed(made.body, lambda one: cut(one, least))) for made in sections
    ]


def cut(table: Table, most: int) -> Table:
    """Return a table's first rows, and a note of how many it has left out in all."""
    rest = len(table.rows) - most
    if rest <= 0:
        return table
    before = _NOTED.match(table.note)
    left = rest + (int(before.group(1)) if before else 0)
    own = table.note if table.note and not before else ""
    told = (
        f"{left} more row{'s are' if left > 1 else ' is'} not shown here: records.parquet holds the "
        "numbers of all."
    )
    return replace(
        table,
        rows=table.rows[:most],
        about=table.about[:most],
        exact={at: _first(text, most) for at, text in table.exact.items()},
        order={at: _first(text, most) for at, text in table.order.items()},
        note=f"{told} {own}".strip(),
    )


def _first(numbers: str, most: int) -> str:
    return ",".join(numbers.split(",")[:most])


def _tables(body: Body) -> Iterator[Table]:
    found: list[Table] = []

    def seen(table: Table) -> Table:
        found.append(table)
        return table

    _changed(body, seen)
    yield from found


def _changed(body: Body, change: Callable[[Table], Table]) -> Body:
    return replace(body, blocks=list(_blocks(body.blocks, change)))


def _blocks(blocks: Iterable[Block], change: Callable[[Table], Table]) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Table):
            yield change(block)
        elif isinstance(block, Charts):
            items = [replace(chart, table=change(chart.table)) for chart in block.items]
            yield replace(block, items=items)
        elif isinstance(block, Failure):
            cells = None if block.cells is None else change(block.cells)
            yield replace(block, said=change(block.said), cells=cells)
        else:
            # What a plug-in's section holds instead is told where it is written.
            yield block
