"""What a page has room for: with too much of it, drawings, rows and whole parts end sooner and say so.

A page of a study of 100,000 cells, or of hundreds of workloads, has to open like one of a hundred cells. Each table
and each chart is bounded by itself; this bounds all of them together. Other formats hold everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from markupsafe import Markup

from transect.report.blocks import Block, Body, Chart, Charts, Difference, Failure, Heading, Table, note
from transect.report.making import MadeSection
from transect.report.sizes import size_of
from transect.report.text import clipped, count

# Rows of all tables of a page: some 400 bytes each, with what the filter needs to know of them.
MOST_PAGE_ROWS = 5000
# Rows that every table keeps.
LEAST_ROWS = 8
# Bytes of all drawings of a page, and of all its sections.
MOST_DRAWINGS = 1_500_000
MOST_BYTES = 3_500_000
# Headings that are named where parts are left out.
_MOST_NAMED = 4

_NOT_DRAWN = "Not drawn: the page has room for no more drawings. Its numbers stand below."


def fitted(
    sections: Sequence[MadeSection],
    most: int = MOST_PAGE_ROWS,
    *,
    drawings: int = MOST_DRAWINGS,
    size: int = MOST_BYTES,
) -> list[MadeSection]:
    """Return the sections with at most so many rows, bytes of drawings and bytes in all.

    The longest tables lose rows first, and every table keeps `LEAST_ROWS`; the later drawings of a section
    are left out before the first ones of another; of sections that are too long in spite of that, the end is
    left out. What is left out is said and counted where it stood.
    """
    return _shortened(_with_few_drawings(_with_few_rows(sections, most), drawings), size)


def _with_few_rows(sections: Sequence[MadeSection], most: int) -> list[MadeSection]:
    lengths = [len(one.rows) for made in sections for one in _tables(made.body)]
    least = max(LEAST_ROWS, _share(lengths, most))
    return (
        [replace(made, body=_changed(made.body, lambda one: cut(one, least))) for made in sections]
        if sum(lengths) > most
        else list(sections)
    )


def _share(wanted: Sequence[int], most: int) -> int:
    """Return the largest share with which all get what they want, or that, and together no more than `most`."""
    low, high = 0, max(wanted, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(one, middle) for one in wanted) <= most:
            low = middle
        else:
            high = middle - 1
    return low


def _with_few_drawings(sections: Sequence[MadeSection], most: int) -> list[MadeSection]:
    # By their turn in their section: all first ones come before any second one.
    turns = sorted(
        (
            (turn, place, len(chart.svg))
            for place, made in enumerate(sections)
            for turn, chart in enumerate(_charts(made.body))
        )
    )
    if sum(size for *_, size in turns) <= most:
        return list(sections)
    left, out = most, set()
    for turn, place, size in turns:
        if size <= left:
            left -= size
        else:
            out.add((place, turn))
    return [
        replace(made, body=_undrawn(made.body, {turn for at, turn in out if at == place}))
        for place, made in enumerate(sections)
    ]


def _undrawn(body: Body, out: set[int]) -> Body:
    turns = iter(range(len(list(_charts(body)))))
    blocks: list[Block] = []
    for block in body.blocks:
        if isinstance(block, Charts):
            items = [_empty(chart) if next(turns) in out else chart for chart in block.items]
            blocks.append(replace(block, items=items))
        else:
            blocks.append(block)
    return replace(body, blocks=blocks)


def _empty(chart: Chart) -> Chart:
    """Return a chart without its drawing; its numbers stay."""
    said = f"{_NOT_DRAWN} {chart.note}".strip()
    return replace(chart, drawing=Markup(""), legend=(), marks=(), note=said)


def _charts(body: Body) -> Iterator[Chart]:
    for block in body.blocks:
        if isinstance(block, Charts):
            yield from block.items


def _shortened(sections: Sequence[MadeSection], most: int) -> list[MadeSection]:
    sizes = [[_weight(block) for block in made.body.blocks] for made in sections]
    wanted = [sum(own) for own in sizes]
    share = _share(wanted, most)
    return [
        made if total <= share else replace(made, body=_beginning(made.body, own, share))
        for made, own, total in zip(sections, sizes, wanted, strict=True)
    ]


def _weight(block: Block) -> int:
    # Two cells are compared by data that no other part holds, and ids are what links lead to.
    kept = isinstance(block, Difference) or bool(getattr(block, "ids", ()))
    return 0 if kept else size_of(block)


def _beginning(body: Body, sizes: Sequence[int], most: int) -> Body:
    """Return what comes first, what may not be missing, and a sentence on the rest."""
    kept: list[Block] = []
    out: list[Block] = []
    left = most
    for block, size in zip(body.blocks, sizes, strict=True):
        if size and (out or size > left):
            out.append(block)
        else:
            left -= size
            kept.append(block)
    while kept and isinstance(kept[-1], Heading) and out:
        out.insert(0, kept.pop())
    return replace(body, blocks=[*kept, note(_told(out))])


def _told(out: Sequence[Block]) -> str:
    charts = sum(len(block.items) for block in out if isinstance(block, Charts))
    tables = sum(isinstance(block, Table) for block in out)
    parts = [
        count(charts, "chart") if charts else "",
        count(tables, "table") if tables else "",
        count(rest, "other part")
        if (rest := sum(not isinstance(block, (Charts, Table, Heading)) for block in out))
        else "",
    ]
    heads = [block.text for block in out if isinstance(block, Heading)]
    named = ", ".join(clipped(text, 60) for text in heads[:_MOST_NAMED])
    more = f" and {len(heads) - _MOST_NAMED} more" if len(heads) > _MOST_NAMED else ""
    below = f", below {named}{more}" if heads else ""
    return (
        f"Left out here, as the page has room for no more: {', '.join(filter(None, parts))}{below}. "
        "records.parquet holds the numbers of all, and `transect report STUDY --format markdown` writes every table."
    )


def cut(table: Table, most: int) -> Table:
    """Return a table's first rows, and a note of how many it has left out in all."""
    rest = len(table.rows) - most
    if rest <= 0:
        return table
    return replace(
        table,
        rows=table.rows[:most],
        about=table.about[:most],
        exact={at: _first(text, most) for at, text in table.exact.items()},
        order={at: _first(text, most) for at, text in table.order.items()},
        more=table.more + rest,
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
