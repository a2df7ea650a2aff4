"""Shortens a page that would be too large: tables and sections end sooner and say so.

A page of a study of 100,000 cells, or of hundreds of workloads, has to open like one of a hundred cells. Each table and
each chart is bounded by itself; this bounds all of them together. Other formats hold everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from jinja2 import Template

from transect.domain.errors import FAULTS
from transect.report.engine.blocks import Block, Body, Charts, Failure, Heading, Table, note
from transect.report.engine.collect import MadeSection
from transect.report.engine.shell import templates
from transect.report.engine.text import clipped, count

# Rows of all tables of a page: some 400 bytes each, with what the filter needs to know of them.
MAX_PAGE_ROWS = 5000
# Rows that every table keeps.
MIN_ROWS = 8
# Bytes of all sections of a page.
MAX_BYTES = 3_500_000
# Headings that are named where parts are left out.
_MAX_NAMED = 4


def fitted(sections: Sequence[MadeSection], most: int = MAX_PAGE_ROWS, size: int = MAX_BYTES) -> list[MadeSection]:
    """Return the sections with at most so many rows, and bytes in all.

    The longest tables lose rows first, and every table keeps `MIN_ROWS`; of sections that are too long in spite of
    that, the end is left out. What is left out is said and counted where it stood.
    """
    return _shortened(_with_few_rows(sections, most), size)


def _with_few_rows(sections: Sequence[MadeSection], most: int) -> list[MadeSection]:
    lengths = [len(table.rows) for made in sections for table in _tables(made.body)]
    least = max(MIN_ROWS, _share(lengths, most))
    return (
        [replace(made, body=_changed(made.body, lambda table: cut(table, least))) for made in sections]
        if sum(lengths) > most
        else list(sections)
    )


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


def _shortened(sections: Sequence[MadeSection], most: int) -> list[MadeSection]:
    page = templates().get_template("section.html.j2")
    sizes = [[_weight(block, page) for block in made.body.blocks] for made in sections]
    wanted = [sum(weights) for weights in sizes]
    share = _share(wanted, most)
    return [
        made if total <= share else replace(made, body=_beginning(made.body, weights, share))
        for made, weights, total in zip(sections, sizes, wanted, strict=True)
    ]


def _weight(block: Block, page: Template) -> int:
    try:
        return len(page.render(body=Body(lead="", blocks=[block])))
    except FAULTS:  # reported when the section is rendered
        return 0


def _beginning(body: Body, sizes: Sequence[int], most: int) -> Body:
    """Return what comes first, and a sentence on the rest."""
    kept: list[Block] = []
    out: list[Block] = []
    left = most
    for block, size in zip(body.blocks, sizes, strict=True):
        if out or size > left:
            out.append(block)
        else:
            left -= size
            kept.append(block)
    while kept and isinstance(kept[-1], Heading) and out:
        out.insert(0, kept.pop())
    return replace(body, blocks=[*kept, note(_left_out(out))])


def _left_out(out: Sequence[Block]) -> str:
    charts = sum(len(block.items) for block in out if isinstance(block, Charts))
    tables = sum(isinstance(block, Table) for block in out)
    parts = [
        count(charts, "chart") if charts else "",
        count(tables, "table") if tables else "",
        count(others, "other part")
        if (others := sum(not isinstance(block, (Charts, Table, Heading)) for block in out))
        else "",
    ]
    heads = [block.text for block in out if isinstance(block, Heading)]
    named = ", ".join(clipped(text, 60) for text in heads[:_MAX_NAMED])
    more = f" and {len(heads) - _MAX_NAMED} more" if len(heads) > _MAX_NAMED else ""
    below = f", below {named}{more}" if heads else ""
    return (
        f"Left out here, as the page has room for no more: {', '.join(filter(None, parts))}{below}. "
        "records.parquet holds the numbers of all, and `transect report STUDY --format markdown` writes every table."
    )


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
            yield replace(block, messages=change(block.messages))
        else:
            # Unknown blocks of a plug-in are reported when they are rendered.
            yield block
