"""The sections on ranks and languages in a real browser: legible on any width, in both themes, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

# Sections with the charts that each has.
KEYS = {"ranks": 2, "languages": 1}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (375, "dark")])
def test_both_sections_fit_the_page_and_complain_of_nothing(
    browser: Any, ranks_report: Path, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, complaints, asked = context.new_page(), [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(ranks_report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for key, drawn in KEYS.items():
        section = page.locator(f"section#{key}")
        assert section.is_visible()
        charts = section.locator("figure svg.plot")
        assert charts.count() == drawn
        # Every chart says in words what it shows, and is as wide as its place.
        for number in range(charts.count()):
            chart = charts.nth(number)
            assert len(chart.get_attribute("aria-label") or chart.inner_text()) > 40
            assert 0 < chart.bounding_box()["width"] <= width
    assert not complaints
    assert [url for url in asked if not url.startswith(("data:", ranks_report.as_uri()))] == []
    context.close()
