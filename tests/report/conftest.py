"""One synthetic study and its report, shared by the report's tests."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from make_records import write_synthetic_study

from transect.report.build import build_report

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known where no project file does."""
    config.addinivalue_line("markers", "browser: needs chromium and playwright")


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of synthetic results."""
    return write_synthetic_study(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="session")
def report(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """report.html of the synthetic study, with its companions beside it."""
    output = tmp_path_factory.mktemp("report") / "report.html"
    build_report(
        study,
        output,
        title="Synthetic <study>",
        questions=["Which is <i>first</i>?"],
        published=[
            {"study": "A 2020", "what": "speed-up on 4 ranks", "published": 3.1, "measured": 1.7,
             "note": "other <machine>"},
        ],
    )  # fmt: skip
    return output


@pytest.fixture(scope="session")
def summary(report: Path) -> dict[str, Any]:
    """summary.json as data."""
    return json.loads((report.parent / "summary.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A real Chromium; skips with the reason when there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        path = str(CHROMIUM) if CHROMIUM.exists() else playwright.chromium.executable_path
        if not Path(path).exists():
            pytest.skip(f"no chromium at {CHROMIUM} nor at {path}")
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()
