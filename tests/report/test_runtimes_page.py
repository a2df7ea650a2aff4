"""The section on runtimes in whole reports: of old records, inert, and legible on any width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from make_runtime_records import write_runtime_study
from pages import Page

from transect.report.build import build_report


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a study with everything that the section knows."""
    folder = tmp_path_factory.mktemp("runtimes")
    output = folder / "report.html"
    summary = build_report(write_runtime_study(folder, repeats=2), output, title="t", questions=[])
    assert summary["problems"] == []
    return output


def test_the_whole_section_is_drawn_inert_with_ids_of_its_own(page: Path) -> None:
    read = Page.read(page)
    section = read.section("runtimes")
    assert "not be made" not in section.text
    assert len(read.ids) == len(set(read.ids))
    assert {"tickets on cpu", "What a call costs", "Other session options", "Under load", "Conditions and outputs"} <= {
        one.text for one in section.soup("h3")
    }
    assert not section.soup.select("img, script")
    # A reason is text in its tag, whatever it holds.
    reasons = [one["title"] for one in section.soup.select("[title]")]
    assert any("3 NaN" in one and "<script>" in one for one in reasons)


@pytest.mark.browser
@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_never_scrolls_sideways_and_stays_legible(browser: Any, page: Path, width: int) -> None:
    opened = browser.new_page(viewport={"width": width, "height": 900})
    opened.goto(page.as_uri())
    opened.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    smallest = opened.evaluate(
        "Math.min(...[...document.querySelectorAll('#runtimes svg.plot text')].map((text) => "
        "parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"
    )
    assert smallest >= 9
    missing = opened.evaluate(
        "[...document.querySelectorAll('#runtimes figure')].filter((figure) => "
        "!figure.nextElementSibling?.querySelector('tbody tr')).map((f) => f.innerText)"
    )
    opened.close()
    assert missing == []
