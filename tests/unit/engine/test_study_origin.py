"""Whose results a folder holds: which study file they were planned from."""

from __future__ import annotations

import json

import pytest

from transect.domain.errors import BadInput
from transect.domain.paths import StudyPaths
from transect.engine.plan_files import check_origin


@pytest.fixture
def study(tmp_path):
    """A study `a` that was planned from `first.yaml`, and the file `second.yaml`."""
    paths = StudyPaths(results=tmp_path / "results", study="a")
    paths.folder.mkdir(parents=True)
    origin = {"file": str(tmp_path / "first.yaml"), "project": ""}
    paths.plan.write_text(json.dumps({"origin": origin}))
    (tmp_path / "second.yaml").write_text("name: a\n")
    return paths


def test_a_file_whose_study_has_another_name_today_holds_nothing_up(study, tmp_path):
    (tmp_path / "first.yaml").write_text("name: b\n")
    told = check_origin(study, tmp_path / "second.yaml")
    assert told is not None
    assert "first.yaml, which is 'b'" in told and "second.yaml" in told


@pytest.mark.parametrize("content", ["name: a\n", "name: [\n", "other: b\n", "name: 5\n"])
def test_a_file_that_may_have_the_name_is_another_study(study, tmp_path, content):
    (tmp_path / "first.yaml").write_text(content)
    with pytest.raises(BadInput, match="another study file"):
        check_origin(study, tmp_path / "second.yaml")
