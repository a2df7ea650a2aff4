"""The studies of ticket classifiers, as they are planned."""

from __future__ import annotations

import pytest
import yaml

from factories import plan_study
from transect.domain.paths import ROOT
from transect.engine.run_chosen import with_inputs
from transect.planning.plan import StudyPlan


@pytest.fixture(scope="module", params=["tickets", "tickets-full"])
def plan(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> StudyPlan:
    """The study with a file of its own in the place of the real tickets."""
    folder = tmp_path_factory.mktemp("study")
    study = yaml.safe_load((ROOT / "config" / "studies" / f"{request.param}.yaml").read_text())
    for corpus in study["tickets"]["corpora"].values():
        if "path" in corpus:
            corpus["path"] = "tickets.csv"
    (folder / "tickets.csv").write_text("Document,Topic_group\nno ink,Hardware\n")
    return plan_study(folder, yaml.safe_dump(study))


def test_a_chosen_run_that_goes_on_with_another_comes_after_it(plan):
    longer = [planned for planned in plan.stage("classify").values() if "shorter" in planned.inputs]
    assert longer or plan.study.name != "tickets"
    keys = [planned.key for planned in with_inputs(plan, longer[::-1])]
    assert all(keys.index(planned_cell.inputs["shorter"]) < keys.index(planned_cell.key) for planned_cell in longer)
    assert len(keys) == len(set(keys))
    stages = [stage for stage, _ in keys]
    assert stages == sorted(stages, key=list(plan.cells).index)
