"""How soon a page can be used in Chromium, and how soon its filter answers: medians of several openings.

Usable: the DOM is complete, something is painted, and a task that is queued after both has run, so that the main thread
is free. A filter has answered when the second animation frame after the click begins: by then the first one's layout and
paint are done.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
# Before tests/report, which has a conftest of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conftest import ARGUMENTS, CHROMIUM

_IDLE = """() => new Promise((done) => {
  const painted = () => performance.getEntriesByName('first-contentful-paint').length;
  const look = () => painted() ? requestIdleCallback(() => done(performance.now())) : setTimeout(look, 5);
  look();
})"""
_PHASES = """() => ({
  'DOM complete': performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd,
  'first paint': performance.getEntriesByName('first-contentful-paint')[0].startTime,
})"""
# The first value of a facet is chosen by its own box, and taken back.
_FILTER = """(at) => new Promise((done) => {
  const panel = document.querySelectorAll('.facet-panel')[at];
  panel.showPopover();
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const box = panel.querySelector('input[type=checkbox]');
    const started = performance.now();
    box.click();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const answered = performance.now() - started;
      box.click();
      panel.hidePopover();
      requestAnimationFrame(() => done(answered));
    }));
  }));
})"""
_FACETS = "() => [...document.querySelectorAll('.facet-panel')].map((one) => one.getAttribute('aria-label'))"
_UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true })"


def opened(page_file: Path, rounds: int = 5) -> dict[str, float]:
    """Return milliseconds of each phase, and of the filter by each facet, with all folded and unfolded."""
    from playwright.sync_api import sync_playwright

    found: dict[str, list[float]] = {}
    with sync_playwright() as playwright:
        path = str(CHROMIUM) if CHROMIUM.exists() else playwright.chromium.executable_path
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        for _ in range(rounds):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.goto(page_file.as_uri())
            usable = page.evaluate(_IDLE)
            for name, value in {**page.evaluate(_PHASES), "usable": usable}.items():
                found.setdefault(name, []).append(value)
            for how in ("", ", all unfolded"):
                if how:
                    page.evaluate(_UNFOLD)
                    page.wait_for_timeout(500)
                for at, name in enumerate(page.evaluate(_FACETS)):
                    title = f"filter by {name.lower()}{how}"
                    found.setdefault(title, []).append(page.evaluate(_FILTER, at))
            context.close()
        browser.close()
    return {name: median(values) for name, values in found.items()}
