"""The section on runtimes in whole reports: of old records, inert, and legible on any width."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from make_runtime_records import runs, write_runtime_study
from pages import Page

from factories import write_records
from transect.analysis.load import load_records
from transect.domain.record import read_record
from transect.report.build import build_report


def _strip(study: Path) -> None:
    """Turn all records into such as were written before cells had options, sessions and loads."""
    for path in study.glob("infer/*/record.json"):
        raw = json.loads(path.read_text(encoding="utf-8"))
        raw["checksum"] = ""
        raw["cell"] |= {"options": [], "strategy": None, "reduce": "mean", "benchmark": None}
        for axis in ("sessions", "load"):
            raw["cell"].pop(axis, None)
        path.write_text(json.dumps(raw), encoding="utf-8")


def test_records_from_before_options_and_loads_still_make_a_report(tmp_path: Path) -> None:
    study = tmp_path / "old"
    old = {"amount": 2, "told": False}
    write_records(study, *runs("cpp", 1e-4, **old), *runs("python", 2e-4, **old))
    _strip(study)
    assert read_record(next(study.glob("infer/*/record.json"))).cell.get("options") == "equal"
    loaded = load_records(study)
    assert not loaded.problems and len(loaded.records) == 4
    summary = build_report(study, tmp_path / "report.html", title="t", questions=[])
    assert summary["problems"] == []
    section = Page.read(tmp_path / "report.html").section("runtimes")
    assert "Under load" not in section.text and "Beside the others" not in section.text
    assert "✓ 2" in section.text
    assert any("Latency" in one.text for one in section.soup("figcaption"))


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
