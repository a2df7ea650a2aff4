"""Tables of the report in a real browser: sorted, searched, downloaded."""

from __future__ import annotations

import csv
import io
import itertools
import statistics
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from make_records import HOSTILE, make_record, provenance
from pages import UNFOLD, downloaded, hash_to

from factories import train_cell
from transect.analysis.load import load_records
from transect.domain.record import Cause, Status, write_record
from transect.report.engine.build import build_report

pytestmark = pytest.mark.browser


def columns_of(page: Any) -> list[Any]:
    """Sort all tables by each of their columns, both ways; return the words and the numbers behind them."""
    return page.evaluate(
        """() => { const found = [], tables = [...explore.tables.values()].filter((table) => table.rows.length > 1);
        const order = (table) => [...table.body.rows].map((row) => table.rows.find((one) => one.row === row).at);
        const most = Math.max(...tables.map((table) => table.columns.length));
        for (let column = 0; column < most; column++) for (const down of [false, true]) {
          const able = tables.filter((table) => column < table.columns.length);
          explore.change((state) => able.forEach((table) => state.sorts.set(table.id, [table.columns[column], down])));
          for (const table of able) {
            const numbers = explore.numbers(table)[column], head = table.heads[column];
            found.push([table.id, column, down, head.className.includes('n'),
              [...table.body.rows].map((row) => row.cells[column].innerText.trim()),
              numbers ? order(table).map((at) => numbers[at + 1]) : null, head.getAttribute('aria-sort'), order(table)]);
          }
        }
        explore.change((state) => state.sorts.clear());
        for (const table of tables) found.push([table.id, -1, false, false, [], null, null, order(table)]);
        return found; }"""
    )


def test_every_table_sorts_by_every_column(page: Any) -> None:
    page.evaluate(UNFOLD)
    sorts = columns_of(page)
    assert len({state[0] for state in sorts}) > 30 and len(sorts) > 400
    moved = 0
    for table, column, down, numeric, words, exact, direction, order in sorts:
        if column < 0:
            assert order == sorted(order), f"{table}: the report's order comes back"
            continue
        assert direction == ("descending" if down else "ascending")
        moved += order != sorted(order)
        missing = [word in ("", "–") for word in words]
        assert missing == sorted(missing), f"{table} {column}: what is not there comes last"
        numbers = [value for value in exact or () if value is not None]
        assert numbers == sorted(numbers, reverse=down), (table, column, down)
        if not numeric:
            there = [word for word in words if word not in ("", "–")]
            runs = [word for word, _ in itertools.groupby(there)]
            assert len(runs) == len(set(runs)), f"{table} {column}: what is alike stands together"
            plain = [word for word in runs if word.isalpha() and word.islower()]
            assert plain == sorted(plain, reverse=down), (table, column)
    assert moved > 200


def test_a_header_sorts_by_keyboard_says_so_and_gives_back_the_order(page: Any) -> None:
    page.evaluate(UNFOLD)
    id = "chart-rate-digits-cnn-numbers"
    table = page.locator(f"#{id}")
    table.scroll_into_view_if_needed()
    head = table.get_by_role("button", name="Runs").first
    head.focus()
    texts = [row.inner_text() for row in table.locator("tbody tr").all()]
    button = table.get_by_role("columnheader").first.get_by_role("button")
    status = page.locator(".unseen[role=status]")
    for state, words in (("ascending", "ascending"), ("descending", "descending")):
        button.focus()
        page.keyboard.press("Enter")
        assert table.get_by_role("columnheader").first.get_attribute("aria-sort") == state
        assert words in status.inner_text()
        outline = button.evaluate("(one) => getComputedStyle(one).outlineStyle")
        assert outline != "none", "focus is visible"
    assert f"sort={quote(id)}" in page.url
    button.press("Space")
    assert table.get_by_role("columnheader").first.get_attribute("aria-sort") is None
    assert [row.inner_text() for row in table.locator("tbody tr").all()] == texts
    assert "sort=" not in page.url


def test_a_downloaded_table_holds_the_numbers_of_the_records(page: Any, study: Path) -> None:
    values: dict[str, list[float]] = {}
    for record in load_records(study).records:
        rate = record.value("samples_per_second")
        if record.stage == "train" and rate is not None and record.status is Status.OK:
            values.setdefault(record.cell.without_repeat().id, []).append(rate)
    page.evaluate(UNFOLD)
    hash_to(page, "#?framework=torch&framework=go")
    block = page.locator("#chart-rate-digits-cnn details.fold")
    block.scroll_into_view_if_needed()
    text = downloaded(page, block.get_by_role("button", name="CSV")).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    shown = block.locator("tbody tr:visible")
    assert len(rows) == shown.count() == 9
    for row, element in zip(rows, shown.all(), strict=True):
        assert float(row["Median (samples/s)"]) == pytest.approx(statistics.median(values[row["Cell id"]]), rel=1e-5)
        assert int(row["Runs"]) == len(values[row["Cell id"]])
        assert row["Cell id"].split(".")[1] in ("torch", "go")
        assert element.inner_text().startswith(next(iter(row.values())))


FORMULAS = ["=1+1", "+2", "-3+4", "@SUM(A1)", "\t=5", ' =HYPERLINK("http://x")', "＝7", 'a "quoted", one']


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of cells whose names and messages are formulas and tags."""
    root = tmp_path_factory.mktemp("hostile")
    for place, message in enumerate([*FORMULAS, HOSTILE]):
        cell = train_cell(message, workload=f"<img src=x onerror=window.HACKED=1>{place}", batch=1)
        record = make_record(cell, status=Status.FAILED, cause=Cause.CRASH, message=message, provenance=provenance())
        write_record(root / "synthetic" / "train" / cell.id / "record.json", record)
    build_report(root / "synthetic", root / "report.html", title="Hostile", questions=[])
    return root / "report.html"


def test_a_spreadsheet_finds_no_formula_in_a_download(explored_context: Any, hostile: Path) -> None:
    page = explored_context.new_page()
    page.goto(hostile.as_uri())
    page.evaluate(UNFOLD)
    texts = []
    for block in page.locator("#failures .scroll:visible, #frameworks .scroll:visible").all():
        block.scroll_into_view_if_needed()
        page.wait_for_timeout(30)
    # A browser asks before it takes more than ten in a row.
    for button in page.get_by_role("button", name="as CSV").all()[:8]:
        texts.append(downloaded(page, button).decode("utf-8-sig"))
    fields = [field for text in texts for row in csv.reader(io.StringIO(text)) for field in row]
    seen = " ".join(fields)
    assert "HYPERLINK" in seen and "SUM(A1)" in seen and 'a "quoted", one' in seen
    for field in fields:
        plain = field.lstrip()
        number = plain.lstrip("-").replace(".", "", 1).isdigit()
        assert number or not plain.startswith(("=", "+", "-", "@", "＝")), field
    assert page.evaluate("window.HACKED") is None
    page.click("[popovertarget=facet-workload]")
    page.locator("#facet-workload input[type=checkbox]").first.check()
    assert "<img src=x" in page.inner_text(".filter-said")
    assert page.locator("main img, .facet-panel img").count() == 0
    assert page.evaluate("window.HACKED") is None
    page.close()
