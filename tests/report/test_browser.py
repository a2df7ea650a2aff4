"""The report in a real browser: folded and opened, legible, in both themes, on a phone, on paper, without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Any]:
    """Return a function that opens a page of this width, at a fragment of it if need be."""
    contexts = []

    def open_page(width: int = 1280, hash_: str = "", **how: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, **how)
        contexts.append(context)
        page = context.new_page()
        page.goto(report.as_uri() + hash_)
        return page

    yield open_page
    for context in contexts:
        context.close()


def open_parts(page: Any) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('details.part[open]')].map((one) => one.parentElement.id)")


@pytest.mark.parametrize(("width", "most"), [(1280, 6000), (375, 12000)])
def test_the_page_is_short_before_anything_is_unfolded_and_one_button_unfolds_all(
    opened: Any, width: int, most: int
) -> None:
    page = opened(width)
    assert open_parts(page) == []
    assert page.evaluate("document.documentElement.scrollHeight") <= most
    if width > 375:
        page.click("#unfold")
        assert len(open_parts(page)) == page.locator("details.part").count() > 10
        page.click("#unfold")
        assert open_parts(page) == []


def test_contents_hash_and_answers_open_what_they_lead_to(opened: Any) -> None:
    page = opened(hash_="#runtimes")
    assert open_parts(page) == ["runtimes"]
    assert 0 <= page.evaluate("document.getElementById('runtimes').getBoundingClientRect().top") < 200
    targets = page.evaluate("[...document.querySelectorAll('nav a')].map((a) => a.hash.slice(1))")
    assert targets == page.evaluate("[...document.querySelectorAll('main > section:not(#picture)')].map((s) => s.id)")
    links = page.evaluate(
        "[...document.querySelectorAll('.decide a, .answers a, .proof a')].map((a) => "
        "[a.hash, !!document.getElementById(a.hash.slice(1))])"
    )
    assert len(links) > 20 and [link for link in links if not link[1]] == []
    folded = page.locator("#findings .finding").last
    assert not folded.is_visible()
    page.evaluate("(name) => { location.hash = name }", folded.get_attribute("id"))
    folded.wait_for(state="visible")
    assert folded.locator(".evidence").is_visible()
    # The same link opens again what was closed meanwhile.
    for _ in range(2):
        page.click("nav a[href='#equality']")
        page.wait_for_function("document.querySelector('#equality > details').open")
        page.evaluate("document.querySelector('#equality > details').open = false")


@pytest.mark.parametrize("width", [1280, 375])
def test_every_chart_is_followed_by_its_table_and_its_text_is_legible(opened: Any, width: int) -> None:
    page = opened(width)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert page.locator("figure:has(svg.plot)").count() > 20
    missing = page.evaluate(
        "[...document.querySelectorAll('figure')].filter((figure) => "
        "!figure.nextElementSibling?.querySelector('tbody tr')).map((f) => f.innerText)"
    )
    assert missing == []
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('svg.plot text')].map((text) => "
        "parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"
    )
    assert smallest >= 9


def test_the_button_switches_the_theme_and_paper_is_white(opened: Any) -> None:
    page = opened(hash_="#methods", color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate(ground) == "rgb(255, 255, 255)" != dark
    page.click("#theme")
    assert page.evaluate(ground) == dark
    page.emulate_media(media="print")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"


def test_paper_holds_what_was_opened_and_of_the_rest_what_it_says_first(opened: Any) -> None:
    page = opened(hash_="#methods")
    page.evaluate("document.querySelector('#findings .proof').open = true")
    pdf = page.pdf(format="A4")
    assert 3 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 8
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#methods .facts").first.is_visible() and page.locator("#findings .claim").first.is_visible()
    assert page.locator("#equality .hint").is_visible() and not page.locator("#equality .inside").is_visible()
    assert page.locator(".proof:visible, .command:visible").count() == 0, "no lists of commands"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert open_parts(page) == ["methods"]


def test_without_scripts_everything_can_be_read(opened: Any) -> None:
    page = opened(java_script_enabled=False)
    assert not page.locator("#unfold").is_visible(), "a button that does nothing is not shown"
    assert page.locator(".filter, tr[hidden]").count() == 0 and page.locator("tbody tr").count() > 300
    page.click("#equality > details > summary")
    assert page.locator("#equality .lead").is_visible()


def test_the_decision_table_becomes_cards_on_a_phone(opened: Any) -> None:
    page = opened(1280)
    assert page.locator(".decide thead").first.is_visible()
    assert not page.locator(".decide .asked").first.is_visible()
    page.set_viewport_size({"width": 320, "height": 900})
    assert not page.locator(".decide thead").first.is_visible()
    assert page.locator(".decide .asked").first.is_visible()
    assert page.locator(".decide td").first.bounding_box()["width"] > 0.7 * 320
