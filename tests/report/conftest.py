"""One synthetic study and its report, shared by the report's tests."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from make_records import write_synthetic_study
from pages import BOUND_MS
from said_of_records import old_rules

from transect.domain.claims import Work
from transect.report.engine.build import write_page
from transect.report.engine.charts import drawing
from transect.report.engine.report import Made, make_all


@contextmanager
def unsynced() -> Iterator[None]:
    """Write without waiting for the disk: hundreds of records take as long as it has other work to do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def never_synced() -> Iterator[None]:
    """No test of the report asks what a machine that stops has kept."""
    with unsynced():
        yield


def _begin_drawing() -> None:
    if drawing._processes.cache_info().currsize:
        return
    point = {
        "data": {"values": [{"x": 1}]},
        "mark": {"type": "point"},
        "encoding": {"x": {"field": "x", "type": "quantitative"}},
    }
    drawing.begin(point, alt_text="one", name="one").result(timeout=300)


@pytest.fixture(scope="session", autouse=True)
def drawing_process() -> None:
    """The process that draws charts is everybody's: no test, nor a module's fixture, is the one that starts it."""
    _begin_drawing()


@pytest.fixture(autouse=True)
def drawn() -> None:
    """Start it anew where a test before has ended it."""
    _begin_drawing()


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of synthetic results."""
    with unsynced():
        return write_synthetic_study(tmp_path_factory.mktemp("results"))


WORK = Work.model_validate(
    {
        "title": "A work",
        "short": "A 2020",
        "cite": "A, 2020",
        "hardware": "a laptop",
        "conditions": {},
        "claims": [
            {
                "key": "speed-up",
                "says": "4 ranks are 3.1 times as fast as one on another <machine>.",
                "where": "abstract",
                "kind": "ratio",
                "published": 3.1,
                "rule": {"test": "within", "factor": 1.25},
                "measured": [
                    {
                        "study": "s",
                        "metric": "samples_per_second",
                        "cells": {
                            "workload": "iris-mlp",
                            "framework": "torch",
                            "strategy": "ddp-gloo",
                            "ranks_per_node": 4,
                        },
                        "over": {"strategy": "single", "ranks_per_node": 1},
                    }
                ],
            }
        ],
    }
)
GIVEN: dict[str, Any] = {
    "title": "Synthetic <study>",
    "questions": ["Which is <i>first</i>?"],
    "works": [WORK],
    "since": old_rules([WORK]),
}


@pytest.fixture(scope="session")
def synthetic(study: Path) -> Made:
    """All that is made of the synthetic study."""
    return make_all(study, **GIVEN)


@pytest.fixture(scope="session")
def synthetic_again(study: Path) -> Made:
    """The same once more, for those who ask whether it is the same."""
    return make_all(study, **GIVEN)


@pytest.fixture(scope="session")
def report(synthetic: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """report.html of the synthetic study, with its companions beside it."""
    output = tmp_path_factory.mktemp("report") / "report.html"
    write_page(synthetic, output)
    return output


@pytest.fixture(scope="session")
def summary(report: Path) -> dict[str, Any]:
    """summary.json as data."""
    return json.loads((report.parent / "summary.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def explored_context(browser: Any) -> Iterator[Any]:
    made = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    made.set_default_timeout(BOUND_MS)
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
