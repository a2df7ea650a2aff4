"""Whole pages in a real browser: nothing runs, nothing leaves, nothing hinders, nothing overflows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from make_framework_records import write_framework_study
from make_hostile_records import PAYLOADS, QUESTIONS, TITLE, payload, write_hostile_study
from pages import BOUND_MS

from transect.domain.claims import Work
from transect.report.engine.build import build_report

pytestmark = pytest.mark.browser

UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true })"
# Set before anything of the page runs: what a text would do, and what the page's policy refuses.
CANARY = """
window.ran = []; window.refused = [];
Object.defineProperty(window, 'HACKED', { set: (where) => window.ran.push(where), get: () => undefined });
addEventListener('securitypolicyviolation', (event) =>
  window.refused.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a study that is made of texts that would run."""
    folder = tmp_path_factory.mktemp("hostile")
    study = write_hostile_study(folder)
    output = folder / "report.html"
    claims = [
        {
            "key": f"c{n}",
            "says": payload(n, "says"),
            "where": payload(n, "where"),
            "doubt": payload(n, "doubt"),
            "kind": "value",
            "published": 2.0,
            "unit": payload(n, "unit"),
            "rule": {"test": "within", "factor": 1.25},
            "measured": [{"study": "s", "metric": "samples_per_second", "cells": {"workload": payload(n, "why")}}],
        }
        for n in range(len(PAYLOADS))
    ]
    about = {key: payload(n, key) for n, key in enumerate(("title", "short", "cite", "hardware"))}
    work = Work.model_validate(about | {"conditions": {}, "claims": claims})
    build_report(study, output, title=TITLE, questions=QUESTIONS, works=[work], since={})
    return output


@pytest.fixture(scope="session")
def framework_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of thirty series of frameworks: the longest tables and the most charts."""
    folder = tmp_path_factory.mktemp("frameworks")
    output = folder / "report.html"
    build_report(write_framework_study(folder), output, title="Frameworks", questions=["Which?"])
    return output


class Opened:
    """A page with what it asked for and complained about."""

    def __init__(self, browser: Any, path: Path, **how: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **how)
        self.page = self.context.new_page()
        self.path = path
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.add_init_script(CANARY)
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))
        self.page.goto(path.as_uri())

    def is_quiet(self) -> None:
        """Nothing ran, was refused, left the page, or went wrong."""
        page = self.page
        assert page.evaluate("window.ran") == []
        assert page.evaluate("window.refused") == []
        assert self.complaints == []
        allowed = ("data:", "blob:", self.path.as_uri())
        assert [url for url in self.asked if not url.startswith(allowed)] == []
        assert len(self.context.pages) == 1


@pytest.fixture(scope="module")
def hostile(browser: Any, hostile_page: Path) -> Iterator[Opened]:
    opened = Opened(browser, hostile_page, color_scheme="dark")
    yield opened
    opened.context.close()


@pytest.fixture(scope="module")
def frameworks(browser: Any, framework_page: Path) -> Iterator[Opened]:
    opened = Opened(browser, framework_page, color_scheme="light")
    yield opened
    opened.context.close()


@pytest.fixture(scope="module")
def synthetic(browser: Any, report: Path) -> Iterator[Opened]:
    opened = Opened(browser, report, color_scheme="dark")
    yield opened
    opened.context.close()


def test_the_canary_sees_what_would_run(browser: Any, tmp_path: Path) -> None:
    """A page that does not escape, and has no policy: the check itself can fail."""
    path = tmp_path / "open.html"
    path.write_text("<!DOCTYPE html><body>" + "".join(payload(n, str(n)) for n in (0, 2, 3)))
    opened = Opened(browser, path)
    opened.page.wait_for_function("window.ran.length >= 3", timeout=BOUND_MS)
    with pytest.raises(AssertionError):
        opened.is_quiet()
    opened.context.close()


def test_no_text_of_a_study_runs_whatever_is_clicked(hostile: Opened) -> None:
    page = hostile.page
    page.evaluate(UNFOLD)
    # Everything that can be pressed, pointed at or left, as often as there is time for.
    page.evaluate(
        """() => {
          for (const one of document.querySelectorAll('button, summary, th, svg.plot *, select, label')) {
            for (const name of ['mouseover', 'pointerenter', 'focus', 'click', 'mouseout'])
              one.dispatchEvent(new MouseEvent(name, { bubbles: true, cancelable: true }));
          }
          for (const one of document.querySelectorAll('input[type=search]')) {
            one.value = '<img src=x onerror=HACKED=1>';
            one.dispatchEvent(new Event('input', { bubbles: true }));
          }
        }"""
    )
    page.wait_for_timeout(300)
    page.evaluate(UNFOLD)
    hostile.is_quiet()
    shown = page.evaluate("document.body.textContent")
    for where in ("workload", "framework", "message", "log", "title", "question", "says", "why", "doubt"):
        assert any(payload(n, where) in shown for n in range(4)), where
    # All scripts are the page's own, and no element came out of a text.
    assert page.locator("main script, main style, main iframe, main img, main object").count() == 0
    inline = "[...document.querySelectorAll('*')].flatMap((one) => [...one.attributes])"
    assert page.evaluate(f"{inline}.filter((a) => a.name.startsWith('on')).map((a) => a.value)") == []
    assert (
        page.evaluate(
            f"{inline}.filter((a) => /^\\s*javascript:/i.test(a.value) && "
            "['href', 'src', 'action', 'xlink:href'].includes(a.name))"
        )
        == []
    )


TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Text that looks alike has the contrast of its like: the first of each look is marked.
MARK_LOOKS = """() => {
  const seen = new Set();
  for (const one of document.querySelectorAll('body *')) {
    if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const own = getComputedStyle(one);
    const look = [one.tagName, own.color, own.fill, own.fontSize, own.fontWeight, own.opacity];
    for (let above = one; above; above = above.parentElement) {
      const under = getComputedStyle(above).backgroundColor;
      if (under !== 'rgba(0, 0, 0, 0)') look.push(under);
    }
    if (seen.size < seen.add(look.join()).size) one.dataset.look = '';
  }
  return seen.size;
}"""


def violations(page: Any, within: str | None = None, **options: Any) -> list[Any]:
    """Return what axe finds, in all of a page or in the parts of a selector."""
    sync_playwright = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    asked = {"resultTypes": ["violations"], **options}
    context = {"include": [[within]]} if within else None
    found = sync_playwright.Axe().run(page, context=context, options=asked).response
    assert found["passes"] or found["violations"]
    return [
        (v["id"], v["impact"], [node["target"] for node in v["nodes"][:3]], v["nodes"][0]["html"][:200])
        for v in found["violations"]
    ]


# axe reads no colours of drawings: each text's own beside the paper, by WCAG's formula.
FAINT = """() => {
  const light = (text) => { const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((v) => { v /= 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll('svg.plot text')].filter((text) => { const ink = light(getComputedStyle(text).fill);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) < 4.5; }).map((text) => text.textContent).slice(0, 5);
}"""


def unfolded(which: str, scheme: str, request: pytest.FixtureRequest) -> Any:
    page = request.getfixturevalue(which).page
    page.emulate_media(color_scheme=scheme)
    page.evaluate(UNFOLD)
    return page


LOOKS = pytest.mark.parametrize(
    ("which", "scheme"), [("synthetic", "light"), ("synthetic", "dark"), ("hostile", "dark"), ("hostile", "light")]
)


@LOOKS
def test_axe_finds_nothing_and_drawings_are_legible(which: str, scheme: str, request: pytest.FixtureRequest) -> None:
    page = unfolded(which, scheme, request)
    # Tables get their tools when they come near the view.
    page.evaluate("for (const table of explore.tables.values()) explore.equip(table)")
    whole = {"runOnly": {"type": "tag", "values": TAGS}, "rules": {"color-contrast": {"enabled": False}}}
    assert violations(page, **whole) == []
    assert page.evaluate(MARK_LOOKS) > 5
    contrast = {"type": "rule", "values": ["color-contrast"]}
    assert violations(page, "[data-look]", runOnly=contrast) == []
    assert page.evaluate(FAINT) == []


@pytest.mark.parametrize("width", [320, 768])
@pytest.mark.parametrize("which", ["frameworks", "hostile"])
def test_no_width_overflows(which: str, width: int, request: pytest.FixtureRequest) -> None:
    opened = request.getfixturevalue(which)
    page = opened.page
    page.set_viewport_size({"width": width, "height": 800})
    # Anew: at another width, and with no filter of an earlier test.
    page.goto("about:blank")
    page.goto(opened.path.as_uri())
    for folded in (True, False):
        page.evaluate(f"document.querySelectorAll('details').forEach((d) => {{ d.open = {str(not folded).lower()} }})")
        wide = page.evaluate(
            """(width) => document.documentElement.scrollWidth <= width ? [] :
              [...document.querySelectorAll('main *')].filter((one) =>
                one.getBoundingClientRect().right > width + 1 && !one.parentElement.closest('.scroll, pre, nav, svg'))
              .slice(0, 5).map((one) => one.outerHTML.slice(0, 160))""",
            width,
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width, wide
    page.set_viewport_size({"width": 1280, "height": 900})
