"""A report's page as tests read it: parsed once, its sections, tables and texts by name, or explored in a browser.

`Page.read(folder / "report.html")`, then `page.section("hardware").tables["By host"]`. Anything else is a CSS selector:
`page.soup.select("svg.plot")`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Tag

from transect.report.engine.build import build_report

# Against hanging, on a machine however busy.
BOUND_MS = 300_000
# What stands in every row of a table that is about one cell: its id, and whether it is hidden.
ROWS = """[...explore.tables.values()].flatMap((table) => table.rows.map(({ row, number }) =>
  [explore.cells(number), row.hidden])).filter(([ids]) => ids.length === 1).map(([[id], hidden]) => [id, hidden])"""
SHOWN = """[...explore.tables.values()].flatMap((table) =>
  [...table.body.rows].filter((row) => !row.hidden).map((row) => `${table.id}: ${row.innerText}`))"""
UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true })"


@dataclass(frozen=True)
class Part:
    """A part of a page: an element and what is in it."""

    soup: Tag

    @cached_property
    def text(self) -> str:
        """All text, with single spaces and no tags."""
        return " ".join(self.soup.get_text(" ").split())

    @cached_property
    def tables(self) -> dict[str, list[list[str]]]:
        """Rows of texts, the head's first, by the table's caption or by the title behind which it is folded.

        Tables of one name stand one after another.
        """
        found: dict[str, list[list[str]]] = {}
        for table in self.soup.find_all("table"):
            named = table.find_parent(attrs={"aria-label": True})
            name = str(named["aria-label"]) if named else ""
            rows = ([Part(x).text for x in row.find_all(["th", "td"])] for row in table.find_all("tr"))
            found.setdefault(name, []).extend(rows)
        return found

    @property
    def plots(self) -> list[Tag]:
        """The charts' drawings."""
        return self.soup.select("svg.plot")

    @property
    def ids(self) -> list[str]:
        """The ids of all elements, in order."""
        return [str(element["id"]) for element in self.soup.find_all(id=True)]


@dataclass(frozen=True)
class Page(Part):
    """A whole page."""

    @classmethod
    def read(cls, source: Path | str) -> Page:
        """Parse a file, or a page's text."""
        html = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
        return cls(BeautifulSoup(html, "lxml"))

    def section(self, name: str) -> Part:
        """Return the section of that id; there is exactly one."""
        [found] = self.soup.select(f'section[id="{name}"]')
        return Part(found)

    @property
    def sections(self) -> list[str]:
        """The ids of the sections, in order."""
        return [str(found["id"]) for found in self.soup.select("section[id]")]


def page_of(study: Path, folder: Path, **given: Any) -> tuple[dict[str, Any], str]:
    """Write a study's report into a folder; return its summary and its page."""
    summary = build_report(study, folder / "report.html", title="t", questions=[], **given)
    return summary, (folder / "report.html").read_text(encoding="utf-8")


def until(page: Any, what: str) -> None:
    """Wait for something to be so; Playwright's own waiting needs the eval that the page forbids."""
    limit = time.monotonic() + BOUND_MS / 1000
    while not page.evaluate(what):
        assert time.monotonic() < limit, f"never came to be: {what}"
        page.wait_for_timeout(25)


def hash_to(page: Any, text: str) -> None:
    """Go to another address of the same page."""
    page.evaluate("(text) => { location.hash = text }", text)
    page.wait_for_timeout(50)


def downloaded(page: Any, button: Any) -> bytes:
    with page.expect_download() as waiting:
        button.click()
    return Path(waiting.value.path()).read_bytes()
