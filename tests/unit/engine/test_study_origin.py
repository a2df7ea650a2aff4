"""A study's results belong to one study file."""

from __future__ import annotations

import json

import pytest

from transect.domain.errors import BadInput
from transect.domain.paths import StudyPaths
from transect.engine.plan_files import check_origin


@pytest.mark.parametrize(
    ("today", "message"), [(None, "which has gone: now from"), ("name: other\n", "which is 'other' today: now from")]
)
def test_a_file_that_went_or_has_another_name_today_holds_nothing_up(tmp_path, today, message):
    paths, before, now = StudyPaths(results=tmp_path, study="mine"), tmp_path / "old.yaml", tmp_path / "new.yaml"
    paths.folder.mkdir()
    paths.plan.write_text(json.dumps({"origin": {"file": str(before), "project": ""}}))
    now.write_text("name: mine\n")
    before.write_text("name: mine\n")
    with pytest.raises(BadInput, match="another study file of that name"):
        check_origin(paths, now)
    before.unlink() if today is None else before.write_text(today)
    assert message in (check_origin(paths, now) or "")
