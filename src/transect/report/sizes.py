"""How many bytes the parts of a section take in a page, about."""

from __future__ import annotations

from typing import Any

from transect.report.blocks import Chart, Charts, Chip, Difference, Facts, Failure, Heading, Prose, Table
from transect.report.facets import NOTHING

# Markup around a table, a row, a value and its class, a chip, a chart, an item of a legend, a fact and a paragraph; what
# the filter needs of a row, and the script of a mark.
_TABLE, _ROW, _VALUE, _CLASS, _CHIP, _CHART, _LEGEND, _FACT, _PROSE = (350, 10, 9, 10, 32, 120, 260, 50, 24)
_ABOUT, _MARK = 20, 60


def size_of(block: Any) -> int:
    """Return the bytes of a block in the page, about; 0 for one that no template knows."""
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Charts):
        return sum(_chart(chart) for chart in block.items)
    if isinstance(block, (Prose, Heading)):
        return _PROSE + len(block.text)
    if isinstance(block, Facts):
        return sum(_FACT + len(term) + _value(value) for term, value in block.items)
    if isinstance(block, Difference):
        return len(block.data)
    if isinstance(block, Failure):
        told = (block.cause, block.amount, block.meaning, block.action, block.command)
        logs = sum(_FACT + len(cell) + len(log) for cell, log in block.logs)
        cells = 0 if block.cells is None else _table(block.cells)
        return _TABLE + sum(map(len, told)) + logs + _table(block.said) + cells
    return 0


def _table(table: Table) -> int:
    each = _ROW + sum(_CLASS for column in table.columns if column.numeric or column.code)
    rows = sum(each + sum(map(_value, row)) for row in table.rows)
    heads = sum(_FACT + len(column.title) for column in table.columns)
    about = _ABOUT * sum(one != NOTHING for one in table.about)
    numbers = about + sum(map(len, (*table.exact.values(), *table.order.values())))
    return _TABLE + heads + len(table.note) + numbers + rows


def _chart(chart: Chart) -> int:
    beside = _MARK * len(chart.marks) + _LEGEND * len(chart.legend) + len(chart.note)
    return _CHART + len(chart.svg) + beside + _table(chart.table)


def _value(value: Any) -> int:
    if isinstance(value, Chip):
        return _VALUE + _CHIP + len(value.text) + len(value.title)
    return _VALUE + (len(value) if isinstance(value, str) else 0)
