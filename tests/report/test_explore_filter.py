"""The report's filter and its address in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pages import ROWS, SHOWN, hash_to, until

from factories import train_cell
from transect.analysis.load import load_records

pytestmark = pytest.mark.browser

FACETS = ("workload", "framework", "strategy", "runtime", "ranks", "status")


@pytest.fixture(scope="module")
def known(study: Path) -> dict[str, dict[str, set[str]]]:
    """What the records say of each cell, whatever its repeat: the values of its facets."""
    cells: dict[str, dict[str, set[str]]] = {}
    for record in load_records(study).records:
        cell = record.cell
        facets = cells.setdefault(cell.without_repeat().id, {name: set() for name in FACETS})
        for name in ("workload", "framework", "strategy", "runtime"):
            if cell.get(name):
                facets[name].add(str(cell.get(name)))
        facets["ranks"].add(str(cell.ranks))
        facets["status"].add(record.status.value)
    return cells


def stays(cell: dict[str, set[str]], chosen: dict[str, set[str]]) -> bool:
    """What the page promises: one of the chosen values of each facet."""
    return all(bool(cell[name] & values) for name, values in chosen.items())


def test_every_value_of_every_facet_hides_what_the_records_say_otherwise(
    page: Any, known: dict[str, dict[str, set[str]]]
) -> None:
    values = {name: set.union(*(cell[name] for cell in known.values())) for name in FACETS}
    assert all(len(found) > 1 for found in values.values())
    for name, value in ((facet, value) for facet in FACETS for value in sorted(values[facet])):
        hash_to(page, f"#?{name}={quote(value)}")
        rows = page.evaluate(ROWS)
        assert len(rows) > 300
        wrong = {(id, hidden) for id, hidden in rows if stays(known[id], {name: {value}}) == hidden}
        # A table that is left with nothing is hidden as a whole; its rows are all hidden too.
        assert wrong == set(), (name, value)
        assert f"{name} {value}" in page.inner_text(".filter-said")


def test_several_facets_and_values_join_and_only_what_matches_is_counted(
    page: Any, known: dict[str, dict[str, set[str]]]
) -> None:
    chosen = {"framework": {"torch", "numpy"}, "ranks": {"2", "4"}}
    for name, values in chosen.items():
        page.click(f"[popovertarget=facet-{name}]")
        for value in sorted(values):
            page.get_by_role("group", name=name.capitalize()).get_by_role("checkbox", name=value, exact=True).check()
        page.keyboard.press("Escape")
    rows = page.evaluate(ROWS)
    assert [id for id, hidden in rows if hidden is stays(known[id], chosen)] == []
    assert any(hidden for _, hidden in rows) and not all(hidden for _, hidden in rows)
    shown = page.inner_text(".unseen[role=status]")
    held = "[...explore.tables.values()].filter((table) => table.about)"
    amount, every = page.evaluate(
        f"[{held}.flatMap((t) => t.rows).filter((r) => r.number !== null && !r.row.hidden).length, {held}.flatMap((t) => t.rows).length]"
    )
    assert f"{amount} of {every} rows" in shown
    # A step within the page keeps the filter.
    page.click("nav a[href='#equality']")
    until(page, "location.hash.startsWith('#equality?') && document.querySelector('#equality > details').open")
    assert page.evaluate(ROWS) == rows
    page.get_by_role("button", name="Clear").click()
    assert not any(hidden for _, hidden in page.evaluate(ROWS))
    assert page.url.endswith("#equality") and not page.is_visible(".filter-said")


def test_a_cell_and_any_repeat_of_it_lead_to_the_same_rows(page: Any, known: dict[str, dict[str, set[str]]]) -> None:
    cell = train_cell("torch", workload="digits-cnn", strategy="ddp-gloo", ranks_per_node=2, batch=64)
    assert cell.id in known
    for id in (cell.id, cell.changed(repeat=2).id):
        hash_to(page, f"#?cell={quote(id)}")
        rows = page.evaluate(ROWS)
        assert {cell_id for cell_id, hidden in rows if not hidden} == {cell.id}
    page.get_by_role("searchbox", name="Search in all words").fill("ddp-gloo.n1x4")
    until(page, "location.hash.includes('n1x4')")
    shown = {cell_id for cell_id, hidden in page.evaluate(ROWS) if not hidden}
    assert shown == {id for id in known if "ddp-gloo.n1x4" in id} and len(shown) == 2


SEARCHED = """() => [...document.querySelectorAll("[data-facets]:not([hidden]), table[id] tbody tr:not([hidden]), .facts > div:not([hidden])")]
  .filter((one) => !one.parentElement.closest("[hidden]")).map((one) =>
    [one.textContent.toLowerCase(), one.dataset.facets === undefined ? "" : explore.about(+one.dataset.facets)])"""


def test_words_are_searched_in_all_that_is_said_and_what_does_not_match_is_in_no_count(page: Any) -> None:
    field = page.get_by_role("searchbox", name="Search in all words")
    field.fill("Torch  gloo")
    until(page, "location.hash.includes('words=')")
    found = page.evaluate(SEARCHED)
    assert len(found) > 20
    assert [text for text, about in found if not all(word in f"{text} {about}" for word in ("torch", "gloo"))] == []
    # What no cell is about is found too: a word of the methods.
    field.fill("trimmed")
    until(page, "location.hash.includes('trimmed')")
    assert any(text for text, about in page.evaluate(SEARCHED) if not about)
    field.fill("nonsense-word")
    until(page, "location.hash.includes('nonsense')")
    assert page.evaluate(SEARCHED) == []
    said = page.inner_text(".filter-said")
    assert [part.strip().split(" ")[0] for part in said.partition(": ")[2].split(",")] == ["0", "0", "0"], said
    assert page.evaluate(
        "[...document.querySelectorAll('.matches')].every((one) => one.textContent === 'nothing here matches')"
    )


def test_the_address_brings_everything_back_and_the_back_button_works(page: Any, report: Path) -> None:
    steps = []
    for change in (
        "(state) => { state.chosen[explore.names.indexOf('framework')].add(explore.values[explore.names.indexOf('framework')].indexOf('torch')) }",
        "(state) => { state.sorts.set('chart-rate-digits-cnn-numbers', ['runs', true]) }",
        "(state) => { state.place = 'chart-rate-digits-cnn'; state.words = ['b64'] }",
    ):
        steps.append((page.url, page.evaluate(SHOWN)))
        page.evaluate(f"explore.change({change})")
    url, shown = page.url, page.evaluate(SHOWN)
    for before, rows in reversed(steps):
        page.go_back()
        until(page, f"location.href === {json.dumps(before)}")
        assert page.evaluate(SHOWN) == rows
    page.goto("about:blank")
    page.goto(url)
    assert page.evaluate(SHOWN) == shown
    chart = page.locator("#chart-rate-digits-cnn")
    assert chart.is_visible(), "what the place is folded into is open"
    assert page.evaluate("document.querySelector('#chart-rate-digits-cnn').getBoundingClientRect().top") < 400
    page.goto(report.as_uri())


MEANINGLESS = [
    "#nowhere",
    "#<img src=x onerror=window.HACKED=1>?framework=<script>window.HACKED=2</script>",
    "#?framework=__proto__&constructor=1&ranks=1e9&only=1&words=" + "x" * 500,
    "#?sort=chart-rate-digits-cnn-numbers~nothing~down&sort=a~b~c&sort=~~&find=nowhere~x",
    "#%?%%%&framework=%00%ff&status=OK",
    "#verdict?" + "&".join(f"framework=f{n}" for n in range(5000)),
]


def test_what_an_address_cannot_mean_is_left_out_and_said(page: Any) -> None:
    before = page.evaluate(SHOWN)
    for text in MEANINGLESS:
        hash_to(page, text)
        message = page.inner_text(".filter-ignored")
        assert "address" in message and len(message) < 500, text
        assert page.evaluate(SHOWN) == before, text
        assert page.evaluate("window.HACKED") is None
        assert page.locator(".filter img, .filter b:not(.facet b)").count() == 0, text
        assert page.evaluate("Object.prototype.framework") is None
        hash_to(page, "#")
        assert not page.is_visible(".filter-ignored")


@pytest.mark.parametrize("width", [1280, 320])
def test_the_filter_fits(browser: Any, report: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(report.as_uri() + "#nowhere?framework=torch")
    page.click("[popovertarget=facet-ranks]")
    panel = page.locator("#facet-ranks").bounding_box()
    assert panel["x"] >= 0 and panel["x"] + panel["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
