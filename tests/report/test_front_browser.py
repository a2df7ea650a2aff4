"""The first screen in a real browser: folded, opened by links, keys and paper, cards on a phone, inert."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from make_records import make_record

from factories import train_cell
from factories import write_records as write
from transect.domain.study import Question
from transect.report.build import build_report

pytestmark = pytest.mark.browser

HOSTILE = '<img src=x onerror="window.HACKED=1">'


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Any]:
    """Return a function that opens a page of this width, at a fragment of it if need be."""
    contexts = []

    def open_page(width: int = 1280, hash_: str = "", scripts: bool = True, file: Path = report) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, java_script_enabled=scripts)
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(file.as_uri() + hash_)
        return page

    yield open_page
    for context in contexts:
        context.close()


def open_parts(page: Any) -> list[str]:
    found = page.evaluate("[...document.querySelectorAll('details.part[open]')].map((one) => one.parentElement.id)")
    return list(found)


@pytest.mark.parametrize(("width", "most"), [(1280, 6000), (375, 12000)])
def test_the_page_is_short_before_anything_is_unfolded(opened: Any, width: int, most: int) -> None:
    page = opened(width)
    assert open_parts(page) == []
    assert page.evaluate("document.documentElement.scrollHeight") <= most
    assert page.locator("#findings > ul > .finding").count() == 7
    assert page.locator("#findings .rest .finding").count() > 10


def test_contents_hash_and_answers_open_what_they_lead_to(opened: Any) -> None:
    page = opened(hash_="#runtimes")
    assert open_parts(page) == ["runtimes"]
    assert 0 <= page.evaluate("document.getElementById('runtimes').getBoundingClientRect().top") < 200
    page.click("nav a[href='#equality']")
    page.wait_for_function("document.querySelector('#equality > details').open")
    folded = page.locator("#findings .rest .finding").last
    name = folded.get_attribute("id")
    assert not folded.is_visible()
    page.evaluate("(name) => { location.hash = name }", name)
    folded.wait_for(state="visible")
    assert folded.locator(".evidence").is_visible()
    # The same link opens again what was closed meanwhile.
    page.evaluate("document.querySelector('#equality > details').open = false")
    for _ in range(2):
        page.click("nav a[href='#equality']")
        page.wait_for_function("document.querySelector('#equality > details').open")
        page.evaluate("document.querySelector('#equality > details').open = false")
    assert page.complaints == []


def test_a_hash_that_names_nothing_does_no_harm(opened: Any) -> None:
    for name in ("#", "#nothing", "#%E0%A4%A", "#<img>", "#a'b\"]"):
        page = opened(hash_=name)
        assert open_parts(page) == [] and page.complaints == [], name


def test_one_button_unfolds_all_and_folds_it_again(opened: Any) -> None:
    page = opened()
    every = page.locator("details.part").count()
    button = page.locator("#unfold")
    button.click()
    assert len(open_parts(page)) == every > 10 and button.get_attribute("aria-pressed") == "true"
    button.click()
    assert open_parts(page) == [] and button.inner_text() == "Unfold all"


def test_keys_open_a_section(opened: Any) -> None:
    page = opened()
    page.locator("#methods > details > summary").focus()
    page.keyboard.press("Enter")
    assert open_parts(page) == ["methods"]


def test_paper_holds_what_is_folded_and_the_screen_stays_as_it_was(opened: Any) -> None:
    page = opened(hash_="#methods")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(open_parts(page)) == page.locator("details.part").count()
    assert page.locator(".proof:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert open_parts(page) == ["methods"]


def test_without_scripts_everything_can_be_read(opened: Any) -> None:
    page = opened(scripts=False)
    assert not page.locator("#unfold").is_visible(), "a button that does nothing is not shown"
    page.click("#equality > details > summary")
    assert page.locator("#equality .lead").is_visible()
    page.emulate_media(media="print")
    assert page.locator("#methods .facts, #methods dl").first.is_visible()
    assert page.locator("#findings .rest .claim").last.is_visible()


def test_the_decision_table_becomes_cards_on_a_phone(opened: Any) -> None:
    page = opened(1280)
    assert page.locator(".decide thead").first.is_visible()
    assert not page.locator(".decide .asked").first.is_visible()
    for width in (375, 320):
        page.set_viewport_size({"width": width, "height": 900})
        assert not page.locator(".decide thead").first.is_visible()
        assert page.locator(".decide .asked").first.is_visible()
        boxes = page.locator(".decide td").first.bounding_box()
        assert boxes["width"] > 0.7 * width
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    for width in (320, 375):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_entry_and_answer_links_to_a_finding_that_is_there(opened: Any) -> None:
    page = opened()
    links = page.evaluate(
        "[...document.querySelectorAll('.decide .why, .answers a, .proof a')].map((a) => "
        "[a.hash, !!document.getElementById(a.hash.slice(1))])"
    )
    assert len(links) > 20 and [one for one in links if not one[1]] == []


def test_hostile_names_stay_text(opened: Any, tmp_path: Path) -> None:
    study = tmp_path / "evil"
    for framework in ("numpy", HOSTILE):
        cell = train_cell(framework, workload=HOSTILE)
        write(study, make_record(cell, {"step_time": 1.0, "samples_per_second": 2.0}))
    asked = [Question(ask=HOSTILE, answered_by=["training.fastest", HOSTILE]), HOSTILE]
    out = tmp_path / "out" / "report.html"
    build_report(study, out, title=HOSTILE, questions=asked, again=[HOSTILE, "; rm -rf x"])
    page = opened(file=out)
    page.click("#unfold")
    assert page.evaluate("window.HACKED") is None and page.locator("img").count() == 0
    assert page.complaints == []
    assert HOSTILE in page.locator("#verdict").inner_text()
    assert HOSTILE in page.locator("#decisions th").last.inner_text()
    page.evaluate("document.querySelectorAll('.proof').forEach((one) => { one.open = true })")
    commands = page.locator(".proof .command").all_inner_texts()
    assert commands and all("'; rm -rf x'" in one for one in commands), "quoted for a shell"
