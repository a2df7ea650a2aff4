"""The report in a real browser: offline, inert, legible, in both themes, on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

SIZES = [(1280, 900), (768, 1024), (375, 812)]


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Any]:
    """Return a function that opens the report, counting what it asks for and complains about."""
    contexts = []

    def open_page(width: int = 1280, height: int = 900, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.requests_made, page.complaints = [], []
        page.on("request", lambda request: page.requests_made.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(report.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def kept(browser: Any, report: Path) -> Iterator[Any]:
    """One page for all tests that only look at it."""
    page = browser.new_page()
    page.goto(report.as_uri())
    page.evaluate("window.folds = [...document.querySelectorAll('details')].map((one) => one.open)")
    yield page
    page.close()


@pytest.fixture
def seen(kept: Any) -> Any:
    """That page as it is when it was opened, on a wide and light screen."""
    kept.set_viewport_size({"width": 1280, "height": 900})
    kept.emulate_media(media="screen", color_scheme="light")
    kept.evaluate("document.querySelectorAll('details').forEach((one, at) => { one.open = window.folds[at] })")
    return kept


def unfold(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")


def test_opens_from_a_file_without_network_or_complaints(opened: Any, report: Path) -> None:
    page = opened()
    others = [url for url in page.requests_made if not url.startswith(("data:", report.as_uri()))]
    assert others == []
    assert page.complaints == []


def test_log_text_does_not_run(seen: Any) -> None:
    unfold(seen)
    assert seen.evaluate("window.HACKED") is None
    assert seen.locator("main img, main script").count() == 0
    assert "</script><script>window.HACKED=1" in "".join(seen.locator(".failure pre").all_inner_texts())


@pytest.mark.parametrize("unfolded", [False, True])
def test_the_page_never_scrolls_sideways(seen: Any, unfolded: bool) -> None:
    if unfolded:
        unfold(seen)
    for width, height in SIZES:
        seen.set_viewport_size({"width": width, "height": height})
        assert seen.evaluate("document.documentElement.scrollWidth") <= width


def test_every_chart_is_followed_by_its_table(seen: Any) -> None:
    charts = seen.locator("figure:has(svg.plot)")
    assert charts.count() > 20
    missing = seen.evaluate(
        "[...document.querySelectorAll('figure')].filter((figure) => "
        "!figure.nextElementSibling?.querySelector('tbody tr')).map((f) => f.innerText)"
    )
    assert missing == []


@pytest.mark.parametrize("width", [1280, 375])
def test_chart_text_stays_legible(seen: Any, width: int) -> None:
    seen.set_viewport_size({"width": width, "height": 900})
    smallest = seen.evaluate(
        "Math.min(...[...document.querySelectorAll('svg.plot text')].map((text) => "
        "parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"
    )
    assert smallest >= 9


_CONTRAST = """(selector) => {
  const light = (c) => {
    const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const ratios = [...document.querySelectorAll(selector)].map((one) => {
    const style = getComputedStyle(one);
    const own = style.backgroundColor;
    const under = own === "rgba(0, 0, 0, 0)" ? ground : light(own);
    const over = light(one.closest("svg") ? style.fill : style.color);
    return (Math.max(over, under) + .05) / (Math.min(over, under) + .05);
  });
  return Math.min(...ratios);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_themes(seen: Any, scheme: str) -> None:
    seen.emulate_media(color_scheme=scheme)
    for selector in (".claim", ".evidence", ".chip", "th", ".note", "svg.plot text", "nav a"):
        assert seen.evaluate(_CONTRAST, selector) >= 4.5, (selector, scheme)


def test_the_button_switches_the_theme(opened: Any) -> None:
    page = opened(scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.click("#theme")
    light = page.evaluate(ground)
    assert light == "rgb(255, 255, 255)" != dark
    page.click("#theme")
    assert page.evaluate(ground) == dark


def test_contents_lead_to_every_section(seen: Any) -> None:
    targets = seen.evaluate("[...document.querySelectorAll('nav a')].map((a) => a.hash.slice(1))")
    sections = seen.evaluate("[...document.querySelectorAll('main > section')].map((s) => s.id)")
    assert targets == sections
    assert sections[:3] == ["verdict", "decisions", "findings"] and len(sections) == 18


def test_prints_to_paper(opened: Any) -> None:
    page = opened(scheme="dark")
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 40
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
