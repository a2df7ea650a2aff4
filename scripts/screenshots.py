"""Pictures of a report to be looked at: each section in both themes and several widths.

    python scripts/screenshots.py results/quick/report.html [--widths 320 375 768 1280] [--output FOLDER]

Writes `SECTION-THEME-WIDTH.png` into `screenshots` beside the report, which is never committed, and says of each width
whether the page is wider than the window. Exits with 1 if it is anywhere. Needs playwright and a Chromium
(`CHROMIUM`, by default /usr/bin/chromium, or playwright's own).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

WIDTHS = (320, 375, 768, 1280)
THEMES = ("light", "dark")
# A picture of more pixels can no longer be looked at, nor taken.
HIGHEST = 12_000
FOLDED = "document.querySelectorAll('section > details').forEach((one) => { one.open = true })"
SECTIONS = "[...document.querySelectorAll('main section[id]')].map((one) => one.id)"


def chromium(playwright: Any) -> str:
    """Return the program of a Chromium, or end with what was looked for."""
    path = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
    if path.exists():
        return str(path)
    own = playwright.chromium.executable_path
    if not Path(own).exists():
        raise SystemExit(f"screenshots: no Chromium at {path} nor at {own}; CHROMIUM may name one")
    return str(own)


def pictured(page: Any, folder: Path, ending: str) -> int:
    """Take a picture of each section of an open page, and of what stands first; return how many."""
    page.screenshot(path=folder / f"first-{ending}.png")
    page.evaluate(FOLDED)
    sections = page.evaluate(SECTIONS)
    for name in sections:
        # A report's sections have names of letters, digits and hyphens.
        box = page.locator(f'section[id="{name}"]').bounding_box()
        if box is None or not box["height"]:
            raise SystemExit(f"screenshots: section '{name}' is not shown")
        clip = {**box, "height": min(box["height"], HIGHEST)}
        page.screenshot(path=folder / f"{name}-{ending}.png", clip=clip, full_page=True)
    return len(sections) + 1


def main(report: Path, widths: list[int], folder: Path) -> int:
    """Take all pictures; return the exit code."""
    from playwright.sync_api import sync_playwright

    if not report.is_file():
        raise SystemExit(f"screenshots: {report}: no such report, expected a report.html")
    folder.mkdir(parents=True, exist_ok=True)
    wide, taken = [], 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(playwright), args=["--no-sandbox"])
        for width in widths:
            for theme in THEMES:
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
                page.goto(report.resolve().as_uri())
                taken += pictured(page, folder, f"{theme}-{width}")
                if (found := page.evaluate("document.documentElement.scrollWidth")) > width:
                    wide.append(f"{theme}: {found} pixels wide in a window of {width}")
                page.close()
        browser.close()
    print(f"{taken} pictures in {folder}")
    print("\n".join(wide) or "no width overflows")
    return 1 if wide else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--widths", nargs="+", type=int, default=list(WIDTHS))
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    sys.exit(main(given.report, given.widths, given.output or given.report.parent / "screenshots"))
