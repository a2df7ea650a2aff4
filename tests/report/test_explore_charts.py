"""Charts of the report in a real browser: filtered, told, downloaded."""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pages import ROWS, UNFOLD, downloaded, hash_to

from transect.analysis.load import load_records

pytestmark = pytest.mark.browser


def test_marks_of_every_chart_follow_the_filter(page: Any) -> None:
    page.evaluate(UNFOLD)
    hash_to(page, "#?framework=torch&ranks=2")
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
    shown = [mark for marks in charts for mark in marks if mark[0] is not None and not mark[1]]
    assert any(drawn for _, _, drawn in shown) and not all(drawn for _, _, drawn in shown)
    assert all("torch" in names for names, _, drawn in shown if drawn), "one of many stands for all of them"


def test_a_drawing_comes_as_svg_and_png_without_theme_or_script(page: Any) -> None:
    page.evaluate(UNFOLD)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    hash_to(page, "#?framework=torch")
    chart = page.locator("#chart-rate-digits-cnn")
    chart.scroll_into_view_if_needed()
    text = downloaded(page, chart.get_by_role("button", name="SVG")).decode()
    root = ElementTree.fromstring(text)
    assert "var(" not in text and "<script" not in text and 'style="' not in text
    words = [label.text or "" for label in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(word.startswith("digits-cnn: ") and "samples per second" in word for word in words)
    assert any("by framework torch" in word for word in words)
    assert any(word.startswith("torch") for word in words)
    assert not any(word.startswith("numpy") for word in words)
    fills = {element.get("fill") for element in root.iter()}
    assert "rgb(29, 35, 41)" in fills, "the ink of the light theme"
    image = downloaded(page, chart.get_by_role("button", name="PNG"))
    assert image.startswith(b"\x89PNG\r\n")
    width, height = (int.from_bytes(image[at : at + 4], "big") for at in (16, 20))
    box = [float(number) for number in str(root.get("viewBox")).split()]
    assert (width, height) == (3 * box[2], 3 * box[3]) and len(image) > 5000


def test_hover_and_focus_tell_median_ends_runs_and_cell(page: Any, study: Path) -> None:
    page.evaluate(UNFOLD)
    chart = page.locator("#chart-front-0")
    chart.scroll_into_view_if_needed()
    stop = chart.locator("[data-mark][tabindex='0']")
    stop.wait_for()
    assert stop.count() == 1, "a chart takes one press of the tab key"
    stop.focus()
    tip = page.locator("#tip")
    # The best stands at its median, others at that times a ratio.
    for _ in range(chart.locator("[data-mark]").count()):
        if "Median" in (facts := dict(itertools.pairwise(tip.locator("dt, dd").all_inner_texts()))):
            break
        page.keyboard.press("ArrowDown")
    cell, place = tip.locator("a").inner_text(), stop.get_attribute("data-mark")
    values = [
        record.value("time_to_quality")
        for record in load_records(study).records
        if record.cell.without_repeat().id == cell
    ]
    assert facts["Median"] == f"{statistics.median(values):.3g}"
    assert facts["range"] == f"{min(values):.3g} – {max(values):.3g}" and facts["n"] == "3"
    label = str(stop.get_attribute("aria-label"))
    assert cell in label and facts["Median"] in label and "n 3" in label
    first = tip.inner_text()
    page.keyboard.press("ArrowUp")
    assert tip.inner_text() != first
    page.keyboard.press("ArrowDown")
    assert tip.inner_text() == first
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    box = chart.locator(f".mark-symbol [data-mark='{place}']").last.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert tip.inner_text() == first
    page.keyboard.press("Escape")
    stop.focus()
    page.keyboard.press("Enter")
    assert {id for id, hidden in page.evaluate(ROWS) if not hidden} == {cell}
