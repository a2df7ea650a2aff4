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
from pages import Page
from rank_records import write_rank_study

from transect.report.build import build_report
from transect.report.charts import drawing


@pytest.fixture(autouse=True)
def drawn() -> None:
    """The process that draws charts is everybody's: no test is the one that starts it.

    Tests of that process end it: the next one has a new one.
    """
    if drawing._asked.cache_info().currsize:
        return
    point = {
        "data": {"values": [{"x": 1}]}, "mark": {"type": "point"},
        "encoding": {"x": {"field": "x", "type": "quantitative"}},
    }  # fmt: skip
    drawing.begin(point, alt_text="one", name="one").result(timeout=300)


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
            {"study": "A 2020", "what": "speed-up on 4 ranks", "published": 3.1, "note": "other <machine>",
             "measured": {"stage": "train", "metric": "samples_per_second", "workload": "iris-mlp",
                          "framework": "torch", "strategy": "ddp-gloo", "ranks_per_node": 4,
                          "over": {"strategy": "single", "ranks_per_node": 1}}},
        ],
    )  # fmt: skip
    return output


@pytest.fixture(scope="session")
def report_page(report: Path) -> Page:
    """The synthetic study's report, parsed."""
    return Page.read(report)


@pytest.fixture(scope="session")
def ranks_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """report.html of a made-up study of ranks and languages."""
    folder = tmp_path_factory.mktemp("ranks")
    build_report(write_rank_study(folder), folder / "report.html", title="Ranks", questions=[])
    return folder / "report.html"


@pytest.fixture(scope="session")
def summary(report: Path) -> dict[str, Any]:
    """summary.json as data."""
    return json.loads((report.parent / "summary.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def explored_context(browser: Any) -> Iterator[Any]:
    made = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    made.set_default_timeout(15_000)
    yield made
    made.close()


@pytest.fixture
def page(explored_context: Any, report: Path) -> Iterator[Any]:
    """The report, which complains of nothing and asks for nothing but itself until the test ends."""
    made = explored_context.new_page()
    requests: list[str] = []
    complaints: list[str] = []
    made.on("request", lambda request: requests.append(request.url))
    made.on("console", lambda message: complaints.append(message.text))
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.goto(report.as_uri())
    yield made
    address = report.as_uri()
    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []
    assert complaints == []
    made.close()
