"""Exploring the report in a real browser: filter, sorting, search, address, hover, downloads, paper."""

from __future__ import annotations

import csv
import io
import itertools
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from transect.analysis.load import load_records
from transect.domain.cell import Cell
from transect.domain.record import Cause, Status, write_record
from transect.report.build import build_report
from transect.report.exact import read_number

from make_records import HOSTILE, make_record, provenance

pytestmark = pytest.mark.browser

FACETS = ("workload", "framework", "strategy", "runtime", "ranks", "status")

# What stands in every row of a table that is about one cell: its id, and whether it is hidden.
ROWS = """[...explore.tables.values()].flatMap((table) => table.rows.map(({ row, number }) =>
  [explore.cells(number), row.hidden])).filter(([ids]) => ids.length === 1).map(([[id], hidden]) => [id, hidden])"""
SHOWN = """[...explore.tables.values()].flatMap((table) =>
  [...table.body.rows].filter((row) => !row.hidden).map((row) => `${table.id}: ${row.innerText}`))"""
UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true })"


@pytest.fixture(scope="module")
def context(browser: Any) -> Iterator[Any]:
    made = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    made.set_default_timeout(15_000)
    yield made
    made.close()


@pytest.fixture
def page(context: Any, report: Path) -> Iterator[Any]:
    """The report, which complains of nothing and asks for nothing but itself until the test ends."""
    made = context.new_page()
    requests: list[str] = []
    complaints: list[str] = []
    made.on("request", lambda request: requests.append(request.url))
    made.on("console", lambda message: complaints.append(message.text))
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.goto(report.as_uri())
    yield made
    address = report.as_uri()
    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []
    assert complaints == []
    made.close()


def hash_to(page: Any, text: str) -> None:
    """Go to another address of the same page."""
    page.evaluate("(text) => { location.hash = text }", text)
    page.wait_for_timeout(50)


@pytest.fixture(scope="module")
def known(study: Path) -> dict[str, dict[str, set[str]]]:
    """What the records say of each cell, whatever its repeat: the values of its facets."""
    cells: dict[str, dict[str, set[str]]] = {}
    for record in load_records(study).records:
        cell = record.cell
        own = cells.setdefault(
            cell.without_repeat().id, {name: set() for name in FACETS}
        )
        for name in ("workload", "framework", "strategy", "runtime"):
            if cell.get(name):
                own[name].add(str(cell.get(name)))
        own["ranks"].add(str(cell.ranks))
        own["status"].add(record.status.value)
    return cells


def stays(cell: dict[str, set[str]], chosen: dict[str, set[str]], *, only: bool = False) -> bool:
    """What the page promises: one of the chosen values of each facet, or nothing said of it."""
    return all(
        bool(cell[name] & values) or (not cell[name] and not only)
        for name, values in chosen.items()
    )


def test_every_value_of_every_facet_hides_what_the_records_say_otherwise(
    page: Any, known: dict[str, dict[str, set[str]]]
) -> None:
    values = {name: set.union(*(cell[name] for cell in known.values())) for name in FACETS}
    assert all(len(found) > 1 for found in values.values())
    for name, value in [(name, value) for name in FACETS for value in sorted(values[name])]:
        hash_to(page, f"#?{name}={quote(value)}")
        rows = page.evaluate(ROWS)
        assert len(rows) > 300
        wrong = {
            (id, hidden) for id, hidden in rows if stays(known[id], {name: {value}}) == hidden
        }
        # A table that is left with nothing is hidden as a whole; its rows are all hidden too.
        assert wrong == set(), (name, value)
        assert f"{name} {value}" in page.inner_text(".filter-said")


@pytest.mark.parametrize("only", [False, True])
def test_several_facets_and_values_join(
    page: Any, known: dict[str, dict[str, set[str]]], only: bool
) -> None:
    chosen = {"framework": {"torch", "numpy"}, "ranks": {"2", "4"}}
    for name, values in chosen.items():
        page.click(f"[popovertarget=facet-{name}]")
        for value in sorted(values):
            page.get_by_role("group", name=name.capitalize()).get_by_label(value).check()
        page.keyboard.press("Escape")
    page.get_by_label("also hide what names no framework or ranks").set_checked(only)
    rows = page.evaluate(ROWS)
    assert [id for id, hidden in rows if hidden is stays(known[id], chosen, only=only)] == []
    assert any(hidden for _, hidden in rows) and not all(hidden for _, hidden in rows)
    assert ("only=1" in page.url) is only
    shown = page.inner_text(".unseen[role=status]")
    held = "[...explore.tables.values()].filter((table) => table.about)"
    amount, every = page.evaluate(
        f"[{held}.flatMap((t) => t.rows).filter((r) => !r.row.hidden).length, {held}.flatMap((t) => t.rows).length]"
    )
    assert f"{amount} of {every} rows" in shown
    page.get_by_role("button", name="Clear").click()
    assert not any(hidden for _, hidden in page.evaluate(ROWS))
    assert page.url.endswith("#") and not page.is_visible(".filter-said")


def test_a_cell_and_any_repeat_of_it_lead_to_the_same_rows(
    page: Any, known: dict[str, dict[str, set[str]]]
) -> None:
    cell = Cell.of(stage="train", workload="digits-cnn", framework="torch", strategy="ddp-gloo",
                   ranks_per_node=2, batch=64)  # fmt: skip
    assert cell.id in known
    for id in (cell.id, cell.changed(repeat=2).id):
        hash_to(page, f"#?cell={quote(id)}")
        rows = page.evaluate(ROWS)
        assert {one for one, hidden in rows if not hidden} == {cell.id}
    page.get_by_role("searchbox", name="Cell: a part of its id").fill("ddp-gloo.n1x4")
    page.wait_for_function("location.hash.includes('n1x4')")
    shown = {one for one, hidden in page.evaluate(ROWS) if not hidden}
    assert shown == {id for id in known if "ddp-gloo.n1x4" in id} and len(shown) == 2


def test_marks_of_every_chart_follow_the_filter(page: Any) -> None:
    page.evaluate(UNFOLD)
    hash_to(page, "#?framework=torch&ranks=2&only=1")
    charts = page.evaluate(
        """[...document.querySelectorAll('.chart[id]')].map((chart) => {
          const marks = explore.data.charts[chart.id].marks, at = explore.names.indexOf('framework');
          const drawn = (mark) => [...chart.querySelectorAll(`[data-mark="${mark}"]`)]
            .some((one) => chart.offsetParent && getComputedStyle(one).display !== 'none' && one.closest('svg').getClientRects().length);
          return marks.map((mark, place) => [
            mark[0] == null ? null : explore.listed(explore.rows[mark[0]][at]).map((v) => explore.values[at][v]),
            Array.isArray(mark[2]), drawn(place)]);
        })"""
    )
    assert len(charts) > 20
    told = [mark for marks in charts for mark in marks if mark[0] is not None and not mark[1]]
    assert any(drawn for _, _, drawn in told) and not all(drawn for _, _, drawn in told)
    assert {tuple(names) for names, _, drawn in told if drawn} == {("torch",)}


def test_rows_that_stay_move_together_and_the_drawing_with_them(page: Any) -> None:
    page.evaluate(UNFOLD)
    chart = "#chart-frameworks-digits-cnn-1"
    before = page.evaluate(f"document.querySelector('{chart} svg.plot').getBoundingClientRect().height")
    hash_to(page, "#?framework=go")
    drawing = page.locator(f"{chart} svg.plot")
    assert drawing.bounding_box()["height"] < before / 2
    inside = page.evaluate(
        f"""[...document.querySelectorAll('{chart} [data-mark]:not(.off), {chart} .role-axis-title text')].every((one) => {{
          const box = one.getBoundingClientRect(), all = one.closest('svg').getBoundingClientRect();
          return box.top >= all.top - 2 && box.bottom <= all.bottom + 2; }})"""
    )
    assert inside
    hash_to(page, "#")
    assert drawing.bounding_box()["height"] == pytest.approx(before)


def columns_of(page: Any) -> list[Any]:
    """Sort every table by every column, both ways; return the words and the numbers behind them."""
    return page.evaluate(
        """() => { const found = [];
        for (const table of explore.tables.values()) {
          if (table.rows.length < 2) continue;
          table.columns.forEach((key, column) => { for (const down of [false, true]) {
            explore.change((state) => state.sorts.set(table.id, [key, down]));
            const held = (name) => Object.fromEntries((table.element.dataset[name] || '').split(';').filter(Boolean)
              .map((one) => [one.slice(0, one.indexOf(':')), one.slice(one.indexOf(':') + 1).split(',')]));
            const numbers = held('exact')[column] || held('order')[column];
            const order = [...table.body.rows].map((row) => table.rows.find((one) => one.row === row).at);
            found.push([table.id, column, down, table.heads[column].className.includes('n'),
              [...table.body.rows].map((row) => row.cells[column].innerText.trim()), numbers ? order.map((at) => numbers[at]) : null,
              table.heads[column].getAttribute('aria-sort'), order]);
          } });
          explore.change((state) => state.sorts.delete(table.id));
          const order = [...table.body.rows].map((row) => table.rows.find((one) => one.row === row).at);
          found.push([table.id, -1, false, false, [], null, null, order]);
        } return found; }"""
    )


def test_every_table_sorts_by_every_column(page: Any) -> None:
    page.evaluate(UNFOLD)
    sorts = columns_of(page)
    assert len({one[0] for one in sorts}) > 30 and len(sorts) > 400
    moved = 0
    for table, column, down, numeric, words, exact, said, order in sorts:
        if column < 0:
            assert order == sorted(order), f"{table}: the report's order comes back"
            continue
        assert said == ("descending" if down else "ascending")
        moved += order != sorted(order)
        told: list[float] = []
        missing = [word in ("", "–") for word in words]
        assert missing == sorted(missing), f"{table} {column}: what is not there comes last"
        for place, word in enumerate(words):
            if exact and exact[place]:
                told.append(float(exact[place]))
            elif numeric and (read := read_number(word)) is not None:
                told.append(read[0])
        assert told == sorted(told, reverse=down), (table, column, down)
        if not numeric:
            assert sorted(words) != words or len(set(words)) == 1 or not down, (table, words)
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
    said = page.locator(".unseen[role=status]")
    for state, words in (("ascending", "ascending"), ("descending", "descending")):
        button.focus()
        page.keyboard.press("Enter")
        assert table.get_by_role("columnheader").first.get_attribute("aria-sort") == state
        assert words in said.inner_text()
        outline = button.evaluate("(one) => getComputedStyle(one).outlineStyle")
        assert outline != "none", "focus is visible"
    assert f"sort={quote(id)}" in page.url
    button.press("Space")
    assert table.get_by_role("columnheader").first.get_attribute("aria-sort") is None
    assert [row.inner_text() for row in table.locator("tbody tr").all()] == texts
    assert "sort=" not in page.url


def test_a_table_is_searched_in_its_words_and_cells(page: Any) -> None:
    page.evaluate(UNFOLD)
    table = page.locator("#chart-rate-digits-cnn-numbers")
    table.scroll_into_view_if_needed()
    every = table.locator("tbody tr").count()
    field = page.get_by_role("searchbox", name="Search in Numbers").locator("visible=true")
    block = page.locator("#chart-rate-digits-cnn details.fold")
    field = block.get_by_role("searchbox")
    field.fill("TORCH")
    page.wait_for_function("location.hash.includes('find=')")
    rows = table.locator("tbody tr:visible")
    assert 0 < rows.count() < every
    assert all("torch" in row.inner_text() for row in rows.all())
    assert f"{rows.count()} of {every} rows" in block.inner_text()
    field.fill("no such words")
    page.wait_for_function("document.querySelectorAll('#chart-rate-digits-cnn-numbers tbody tr:not([hidden])').length === 0")
    assert "No row has" in block.inner_text() and field.is_visible()
    field.fill("n1x8.b64")
    page.wait_for_function("location.hash.includes('n1x8')")
    assert all("8 ranks" in row.inner_text() for row in rows.all()) and rows.count() > 0


def test_the_address_brings_everything_back_and_the_back_button_works(page: Any, report: Path) -> None:
    steps = []
    for change in (
        "(state) => { state.chosen[explore.names.indexOf('framework')].add(explore.values[explore.names.indexOf('framework')].indexOf('torch')) }",
        "(state) => { state.sorts.set('chart-rate-digits-cnn-numbers', ['runs', true]) }",
        "(state) => { state.finds.set('chart-rate-digits-cnn-numbers', 'ranks') }",
        "(state) => { state.place = 'chart-rate-digits-cnn'; state.cell = 'b64' }",
    ):
        steps.append((page.url, page.evaluate(SHOWN)))
        page.evaluate(f"explore.change({change})")
    url, shown = page.url, page.evaluate(SHOWN)
    for before, rows in reversed(steps):
        page.go_back()
        page.wait_for_function("(url) => location.href === url", arg=before)
        assert page.evaluate(SHOWN) == rows
    page.goto("about:blank")
    page.goto(url)
    assert page.evaluate(SHOWN) == shown
    chart = page.locator("#chart-rate-digits-cnn")
    assert chart.is_visible(), "what the place is folded into is open"
    assert page.evaluate("document.querySelector('#chart-rate-digits-cnn').getBoundingClientRect().top") < 400
    page.goto(report.as_uri())


def test_links_within_the_page_keep_the_filter(page: Any) -> None:
    hash_to(page, "#?framework=torch")
    page.click("nav a[href='#speed']")
    assert page.evaluate("location.hash") == "#speed?framework=torch"
    assert page.locator("#speed .lead").is_visible()
    page.evaluate("explore.change((state) => { state.cell = 'n1x1' })")
    anchor = page.evaluate("document.querySelector('.finding[hidden]').id")
    page.evaluate("(id) => { const a = document.createElement('a'); a.href = `#${id}`; document.body.append(a); a.click() }", anchor)
    assert "does not match the filter" in page.inner_text(".filter-ignored")


@pytest.mark.parametrize(
    "text",
    [
        "#nowhere",
        "#<img src=x onerror=window.HACKED=1>?framework=<script>window.HACKED=2</script>",
        "#?framework=__proto__&constructor=1&ranks=1e9&only=2&cell=" + "x" * 500,
        "#?sort=chart-rate-digits-cnn-numbers~nothing~down&sort=a~b~c&sort=~~&find=nowhere~x",
        "#%?%%%&framework=%00%ff&cell=%3Cb%3E&status=OK",
        "#verdict?" + "&".join(f"framework=f{n}" for n in range(5000)),
    ],
)  # fmt: skip
def test_what_an_address_cannot_mean_is_left_out_and_said(page: Any, text: str) -> None:
    before = page.evaluate(SHOWN)
    hash_to(page, text)
    said = page.inner_text(".filter-ignored")
    assert said.startswith("Left out of the address: ") and len(said) < 500
    assert page.evaluate(SHOWN) == before
    assert page.evaluate("window.HACKED") is None
    assert page.locator(".filter img, .filter b:not(.facet b)").count() == 0
    assert page.evaluate("Object.prototype.framework") is None
    hash_to(page, "#")
    assert not page.is_visible(".filter-ignored")


def downloaded(page: Any, button: Any) -> bytes:
    with page.expect_download() as waiting:
        button.click()
    return Path(waiting.value.path()).read_bytes()


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
    assert len(rows) == shown.count() == 12
    for row, element in zip(rows, shown.all(), strict=True):
        assert float(row["Median (samples/s)"]) == pytest.approx(
            statistics.median(values[row["Cell"]]), rel=1e-5
        )
        assert int(row["Runs"]) == len(values[row["Cell"]])
        assert row["Cell"].split(".")[1] in ("torch", "go")
        assert element.inner_text().startswith(next(iter(row.values())))


def test_a_drawing_comes_as_svg_and_png_without_theme_or_script(page: Any) -> None:
    page.evaluate(UNFOLD)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    hash_to(page, "#?framework=torch")
    chart = page.locator("#chart-rate-digits-cnn")
    chart.scroll_into_view_if_needed()
    text = downloaded(page, chart.get_by_role("button", name="SVG")).decode()
    root = ElementTree.fromstring(text)
    assert "var(" not in text and "<script" not in text and 'style="' not in text
    words = [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any("Throughput" in word for word in words)
    assert any("Filtered by framework torch" in word for word in words)
    assert any(word.startswith("torch") for word in words)
    assert not any(word.startswith("numpy") for word in words)
    fills = {one.get("fill") for one in root.iter()}
    assert "rgb(29, 35, 41)" in fills, "the ink of the light theme"
    image = downloaded(page, chart.get_by_role("button", name="PNG"))
    assert image.startswith(b"\x89PNG\r\n")
    width, height = (int.from_bytes(image[at : at + 4], "big") for at in (16, 20))
    box = [float(number) for number in str(root.get("viewBox")).split()]
    assert (width, height) == (3 * box[2], 3 * box[3]) and len(image) > 5000


def test_hover_and_focus_tell_median_ends_runs_and_cell(page: Any, study: Path) -> None:
    page.evaluate(UNFOLD)
    chart = page.locator("#chart-frameworks-digits-cnn-2")
    chart.scroll_into_view_if_needed()
    stop = chart.locator("[data-mark][tabindex='0']")
    stop.wait_for()
    assert stop.count() == 1, "a chart takes one press of the tab key"
    stop.focus()
    tip = page.locator("#tip")
    cell = tip.locator("a").inner_text()
    values = [
        record.value("time_to_quality") for record in load_records(study).records
        if record.cell.without_repeat().id == cell
    ]  # fmt: skip
    told = dict(itertools.pairwise(tip.locator("dt, dd").all_inner_texts()))
    assert told["Median"] == f"{statistics.median(values):.3g}"
    assert told["range"] == f"{min(values):.3g} – {max(values):.3g}" and told["n"] == "3"
    label = str(stop.get_attribute("aria-label"))
    assert cell in label and told["Median"] in label and "n 3" in label
    first = tip.inner_text()
    page.keyboard.press("ArrowDown")
    assert tip.inner_text() != first
    page.keyboard.press("ArrowUp")
    assert tip.inner_text() == first
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    box = chart.locator(".mark-symbol [data-mark='0']").last.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert tip.inner_text() == first
    page.keyboard.press("Escape")
    stop.focus()
    page.keyboard.press("Enter")
    assert {id for id, hidden in page.evaluate(ROWS) if not hidden} == {cell}


def test_lines_tell_where_a_point_lies(page: Any) -> None:
    page.evaluate(UNFOLD)
    chart = page.locator("#chart-ranks-digits-cnn")
    chart.scroll_into_view_if_needed()
    chart.locator("[data-mark][tabindex='0']").focus()
    told = dict(itertools.pairwise(page.locator("#tip").locator("dt, dd").all_inner_texts()))
    assert told["ranks"] == "1" and told["n"] == "3" and "Median" in told
    assert chart.locator("[role=img][aria-label*='cell digits-cnn']").count() > 8
    assert chart.locator("svg.plot").get_attribute("role") == "group"


def test_cells_are_shown_as_links_that_lead_to_them(page: Any) -> None:
    page.evaluate(UNFOLD)
    block = page.locator("#chart-rate-digits-cnn details.fold")
    block.scroll_into_view_if_needed()
    block.get_by_role("button", name="Show the cells").click()
    links = block.locator("td.cell-id a")
    assert links.count() == block.locator("tbody tr").count()
    id = links.nth(1).inner_text()
    links.nth(1).click()
    assert block.locator("tbody tr:visible").count() == 1
    assert id in page.inner_text(".filter-said")


def test_paper_shows_what_is_filtered_and_says_so(page: Any) -> None:
    hash_to(page, "#?framework=torch")
    page.emulate_media(media="print")
    assert "Filtered by framework torch: " in page.inner_text(".filter-said")
    assert not page.locator(".filter-controls").is_visible()
    assert page.locator(".tools:visible").count() == 0
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("tbody tr[hidden]:visible").count() == 0
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="screen")


def test_without_a_script_all_rows_are_there(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator(".filter").count() == 0
    assert page.locator("tr[hidden]").count() == 0 and page.locator("tbody tr").count() > 300
    context.close()


@pytest.mark.parametrize("width", [1280, 768, 375, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_filter_fits_and_its_words_have_contrast(
    browser: Any, report: Path, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.goto(report.as_uri() + "#nowhere?framework=torch")
    page.click("[popovertarget=facet-ranks]")
    panel = page.locator("#facet-ranks").bounding_box()
    assert panel["x"] >= 0 and panel["x"] + panel["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    from test_browser import _CONTRAST

    for selector in (".filter-said", ".filter-ignored", ".facet", ".facet.chosen", ".options label", ".matches"):
        assert page.evaluate(_CONTRAST, selector) >= 4.5, selector
    context.close()


FORMULAS = ["=1+1", "+2", "-3+4", "@SUM(A1)", "\t=5", ' =HYPERLINK("http://x")', "＝7", 'a "quoted", one']


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of cells whose names and messages are formulas and tags."""
    root = tmp_path_factory.mktemp("hostile")
    for place, message in enumerate([*FORMULAS, HOSTILE]):
        cell = Cell.of(stage="train", workload=f"<img src=x onerror=window.HACKED=1>{place}",
                       framework=message, strategy="single", batch=1)  # fmt: skip
        record = make_record(cell, status=Status.FAILED, cause=Cause.CRASH, message=message,
                             provenance=provenance())  # fmt: skip
        write_record(root / "synthetic" / "train" / cell.id / "record.json", record)
    build_report(root / "synthetic", root / "report.html", title="Hostile", questions=[])
    return root / "report.html"


def test_a_spreadsheet_finds_no_formula_in_a_download(context: Any, hostile: Path) -> None:
    page = context.new_page()
    page.goto(hostile.as_uri())
    page.evaluate(UNFOLD)
    texts = []
    for block in page.locator(".scroll").all():
        block.scroll_into_view_if_needed()
        page.wait_for_timeout(30)
    for button in page.get_by_role("button", name="as CSV").all():
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
