"""A study's results belong to one study file."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from factories import plan_study
from transect.cli.main import app
from transect.domain.errors import BadInput
from transect.domain.paths import StudyPaths
from transect.engine.plan_files import check_origin, write_plan
from transect.planning.blocks import make_blocks


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


def test_a_report_of_a_study_that_was_edited_since_it_was_planned_says_in_what(tmp_path):
    grids = "train: {grids: [{workloads: [iris-mlp], frameworks: [numpy], strategies: [single]}]}\n"
    made = plan_study(tmp_path, f"name: s\n{grids}", system="name: here\nlauncher: plain\ncores_per_node: 2\n")
    write_plan(made, make_blocks(made))
    arguments = ["report", str(made.file), "--results", str(made.paths.results)]
    assert "edited" not in CliRunner().invoke(app, arguments).output
    made.file.write_text(f"name: s\nequal_within: 10 %\n{grids.replace('numpy', 'torch')}")
    told = "was edited in equal_within, train: the report has the cells"
    assert told in " ".join(CliRunner().invoke(app, arguments).output.split())
    assert told in json.loads((made.paths.folder / "summary.json").read_text())["banner"]["Edited"]
    assert told in " ".join(made.paths.report.read_text().split())
