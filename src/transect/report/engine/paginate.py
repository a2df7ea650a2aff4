"""Shortens a page that would be too large: tables and sections end sooner and say so.

A page of a study of 100,000 cells, or of hundreds of workloads, has to open like one of a hundred cells. Each table and
each chart is bounded by itself; this bounds all of them together. Other formats hold everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from transect.report.engine.blocks import Block, Body, Charts, Failure, Heading, Table, note
from transect.report.engine.collect import MadeSection
from transect.report.engine.finding import names
from transect.report.engine.text import clipped, count

# Rows of all tables of a page, and those that every table keeps.
MAX_PAGE_ROWS, MIN_ROWS = 5000, 8
# Bytes of all sections of a page.
MAX_BYTES = 3_500_000
# About what things take in a page: what is around a text or an entry of a table, a drawing, and what is around both.
_ENTRY_BYTES, _DRAWING_BYTES, _OTHER_BYTES = 45, 15_000, 300


def fitted(sections: Sequence[MadeSection], most: int = MAX_PAGE_ROWS, size: int = MAX_BYTES) -> list[MadeSection]:
    """Return the sections with at most so many rows, and about so many bytes in all.

    The longest tables lose rows first, and every table keeps `MIN_ROWS`; of sections that are too long in spite of
    that, the end is left out. What is left out is said and counted where it stood.
    """
    lengths = [len(table.rows) for made in sections for block in made.body.blocks for table in tables_of(block)]
    if sum(lengths) > most:
        least = max(MIN_ROWS, _share(lengths, most))
        sections = [
            replace(made, body=replace(made.body, blocks=[_cut(block, least) for block in made.body.blocks]))
            for made in sections
        ]
    wanted = [sum(map(_weight, made.body.blocks)) for made in sections]
    share = _share(wanted, size)
    return [
        made if total <= share else replace(made, body=_beginning(made.body, share))
        for made, total in zip(sections, wanted, strict=True)
    ]


def tables_of(block: Block) -> Sequence[Table]:
    """Return the tables of a part of a section, those behind charts too."""
    match block:
        case Table():
            return [block]
        case Charts():
            return [chart.table for chart in block.items]
        case Failure():
            return [block.messages]
        case _:
            return []


def _share(wanted: Sequence[int], most: int) -> int:
    """Return the largest share with which all get what they want, or that, and together no more than `most`."""
    low, high = 0, max(wanted, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) for size in wanted) <= most:
            low = middle
        else:
            high = middle - 1
    return low


def _weight(block: Block) -> int:
    entries = sum(_ENTRY_BYTES + len(str(value or "")) for t in tables_of(block) for row in t.rows for value in row)
    drawings = len(block.items) if isinstance(block, Charts) else 0
    return entries + _DRAWING_BYTES * drawings + _OTHER_BYTES + len(getattr(block, "text", ""))


def _beginning(body: Body, most: int) -> Body:
    """Return what comes first, and a sentence on the rest."""
    end, left = 0, most
    while (weight := _weight(body.blocks[end])) <= left:
        left -= weight
        end += 1
    while end and isinstance(body.blocks[end - 1], Heading):
        end -= 1
    return replace(body, blocks=[*body.blocks[:end], note(_left_out(body.blocks[end:]))])


def _left_out(out: Sequence[Block]) -> str:
    charts = sum(len(block.items) for block in out if isinstance(block, Charts))
    tables = sum(isinstance(block, Table) for block in out)
    others = sum(not isinstance(block, (Charts, Table, Heading)) for block in out)
    parts = [count(n, noun) for n, noun in ((charts, "chart"), (tables, "table"), (others, "other part")) if n]
    heads = [clipped(block.text, 60) for block in out if isinstance(block, Heading)]
    below = f", below {names(heads, 4)}" if heads else ""
    return (
        f"Left out here, as the page has room for no more: {', '.join(parts)}{below}. "
        "records.parquet holds the numbers of all, and `transect report STUDY --format markdown` writes every table."
    )


def _cut(block: Block, most: int) -> Block:
    """Return a part of a section with the first rows of its tables."""
    match block:
        case Table():
            return cut(block, most)
        case Charts():
            return replace(block, items=[replace(chart, table=cut(chart.table, most)) for chart in block.items])
        case Failure():
            return replace(block, messages=cut(block.messages, most))
        case _:
            # Unknown parts of a plug-in are reported when they are rendered.
            return block


def cut(table: Table, most: int) -> Table:
    """Return a table's first rows, and a note of how many it has left out in all."""
    hidden = len(table.rows) - most
    if hidden <= 0:
        return table
    return replace(
        table,
        rows=table.rows[:most],
        about=table.about[:most],
        numbers={at: held[: most + 1] for at, held in table.numbers.items()},
        more=table.more + hidden,
    )
