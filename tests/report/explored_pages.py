"""Reports that are explored in a browser: what tests of the page's interactions share."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

# Against hanging, on a machine however busy.
BOUND_MS = 300_000
# What stands in every row of a table that is about one cell: its id, and whether it is hidden.
ROWS = """[...explore.tables.values()].flatMap((table) => table.rows.map(({ row, number }) =>
  [explore.cells(number), row.hidden])).filter(([ids]) => ids.length === 1).map(([[id], hidden]) => [id, hidden])"""
SHOWN = """[...explore.tables.values()].flatMap((table) =>
  [...table.body.rows].filter((row) => !row.hidden).map((row) => `${table.id}: ${row.innerText}`))"""
UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true })"


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
