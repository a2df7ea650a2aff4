"""What the page's script needs to filter, sort, name and download: collected while the page is written."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from markupsafe import Markup

from transect.report.engine.blocks import Chart, Mark, Table
from transect.report.engine.facets import FacetTable, facets_of
from transect.report.engine.text import number

_WHAT = ("", "median", "value")


def chart_anchor(chart: Chart) -> str:
    """Return the id of a chart, to which a number is added where another one has it already."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", f"chart-{chart.name or chart.title}")


class Explored:
    """The data of one page. Its methods are what the templates call, so that data follow elements."""

    def __init__(self) -> None:
        self._facets = FacetTable()
        self._charts: dict[str, dict[str, Any]] = {}

    def facets(self, item: Any) -> Markup:
        """Return the attribute that says what an element is about: empty where its item says nothing.

        Whatever carries it follows the filter: rows, findings, failures, answers.
        """
        at = self._facets.number(item)
        return Markup("") if at is None else Markup(f' data-facets="{at}"')  # noqa: S704 a number

    def chart(self, chart: Chart) -> Markup:
        """Return the id of a chart, unique in the page, and keep what its marks stand for."""
        name = chart_anchor(chart)
        amount = 1
        while name in self._charts:
            amount += 1
            name = f"{name.removesuffix(f'--{amount - 1}')}--{amount}"
        ends = list(dict.fromkeys(mark.ends for mark in chart.marks))
        self._charts[name] = {
            "axis": chart.axis,
            "across": chart.across,
            "ends": ends,
            "marks": [self._mark(mark, ends) for mark in chart.marks],
        }
        return Markup(f' id="{name}"')  # noqa: S704 letters, digits and hyphens

    def _mark(self, mark: Mark, ends: list[str]) -> list[Any]:
        """Return facets, label, parts or place, what the value is, value, low, high, ends, count."""
        parts = [mark.parts.start, mark.parts.stop] if isinstance(mark.parts, range) else None
        row = [
            self._facets.number(facets_of(mark.about)),
            mark.label,
            parts if parts and parts[0] < parts[1] else _written(mark.at),
            _WHAT.index(mark.what),
            _written(mark.value),
            _written(mark.low),
            _written(mark.high),
            ends.index(mark.ends),
            mark.count,
        ]
        while row and row[-1] in (None, 0):
            row.pop()
        return row

    def numbers(self, table: Table) -> Markup:
        """Return the attributes that hold what a table does not write: its numbers, and how many rows are left out."""
        # JSON has no infinity, and reads one from a number beyond its doubles.
        held = json.dumps(table.numbers, separators=(",", ":")).replace("Infinity", "1e999")
        return (Markup(' data-numbers="{}"').format(held) if table.numbers else Markup("")) + (
            Markup(' data-more="{}"').format(table.more) if table.more else ""
        )

    def data(self) -> dict[str, Any]:
        """Return all of it, to be written after every element that carries a number of it."""
        return {"facets": self._facets.data(), "charts": self._charts}


def _written(value: float | None) -> str | None:
    return None if value is None or not math.isfinite(value) else number(value)
