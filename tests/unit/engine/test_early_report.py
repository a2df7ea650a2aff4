"""When the report is made between two cells."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from transect.domain.paths import StudyPaths
from transect.engine import progress
from transect.engine.progress import EarlyReport


@pytest.mark.parametrize(
    ("started_s", "made_s", "is_due"),
    [
        pytest.param(50, None, False, id="a young study"),
        pytest.param(70, None, True, id="the first comes early"),
        pytest.param(70, 400, True, id="one of an earlier run is no first one"),
        pytest.param(600, 200, False, id="another block's: a fiftieth of the time"),
        pytest.param(600, 300, True, id="another block's, long ago"),
    ],
)
def test_the_first_report_is_early_and_all_take_a_fiftieth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started_s: float, made_s: float | None, is_due: bool
) -> None:
    paths, now, made = StudyPaths(results=tmp_path, study="s"), time.time(), list[StudyPaths]()
    paths.folder.mkdir()
    paths.progress.write_text(json.dumps({"todo": {}, "started": now - started_s}) + "\n")
    if made_s is not None:
        paths.report.touch()
        os.utime(paths.report, (now - made_s, now - made_s))
    monkeypatch.setattr(progress, "make_report_of", made.append)
    early = EarlyReport(paths)
    early.make_if_due()
    early.make_if_due()
    assert made == [paths] * is_due
