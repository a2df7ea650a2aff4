"""The studies of ticket classifiers, as they are planned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from factories import plan_study
from transect.cli.main import app
from transect.domain.errors import BadInput
from transect.domain.paths import ROOT
from transect.engine.run_chosen import with_inputs
from transect.planning.plan import StudyPlan

# Planning asks programs for their versions.
pytestmark = pytest.mark.env

STUDIES = ROOT / "config" / "studies"
MADE_UP = """
name: made-up
tickets:
  corpora: {mine: {format: jsonl, path: mistyped.jsonl, label: owner, otherwise: {}}}
  splits: {half: {train: 0.5, test: 0.5}}
  embeddings: {train: {width: 8}}
classify:
  models: {majority: {kind: majority}}
  grids: [{corpora: [mine], splits: [half], embeddings: [train], models: [majority]}]
workloads: {images-mlp: {dataset_options: {folder: gone, otherwise: generate, generate: 8}}}
train: {grids: [{workloads: [images-mlp], frameworks: [numpy], strategies: [single]}]}
"""


def test_check_names_what_is_made_up_for_want_of_a_file(tmp_path):
    (tmp_path / "x.yaml").write_text(MADE_UP)
    command = ["check", str(tmp_path / "x.yaml")]
    told = CliRunner().invoke(app, command).output
    assert ": mistyped.jsonl is not there, so its tickets are generated" in told
    assert ": what workloads.images-mlp.dataset_options.folder names is not there, so its samples are generated" in told
    assert len(json.loads(CliRunner().invoke(app, [*command, "--json"]).output)["made_up"]) == 2


@pytest.fixture(scope="module", params=["tickets", "tickets-full"])
def plan(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> StudyPlan:
    """The study with a file of its own in the place of the real tickets."""
    folder = tmp_path_factory.mktemp("study")
    study = yaml.safe_load((STUDIES / f"{request.param}.yaml").read_text())
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


def _specs(plan: StudyPlan, stage: str) -> list[dict[str, Any]]:
    return [planned.spec for planned in plan.stage(stage).values()]


def _full(folder: Path) -> StudyPlan:
    study = yaml.safe_load((STUDIES / "tickets-full.yaml").read_text())
    study["tickets"]["corpora"]["real"]["path"] = "real.csv"
    return plan_study(folder, yaml.safe_dump(study))


def test_tickets_that_are_not_there_are_generated_until_they_come(tmp_path):
    generated = _full(tmp_path)
    (tmp_path / "real.csv").write_text("Document,Topic_group\nno ink,Hardware\n")
    read = _full(tmp_path)
    rules = [
        next(s["rule"] for s in _specs(plan, "corpus") if s["cell"]["corpus"] == "real") for plan in (generated, read)
    ]
    assert (rules[0]["format"], rules[0]["path"], rules[0]["instead_of"]) == ("synthetic", None, "real.csv")
    assert rules[0]["options"] == {"tickets": 47837, "owners": 144, "queues": 8} and rules[0]["label"] == "queue"
    assert rules[1]["format"] == "flat-csv" and Path(rules[1]["path"]) == tmp_path / "real.csv"
    assert not rules[1].keys() & {"instead_of", "otherwise"}
    # All that rests on them has another plan, and nothing else has.
    cells = {planned.key: planned.spec for planned in read.stage("classify").values()}
    for planned in generated.stage("classify").values():
        assert (planned.spec == cells[planned.key]) == (planned.cell.corpus == "dialogues")
        told = planned.spec["parameters"]["corpus"]
        assert told["synthetic"] and told.get("instead_of") == (
            None if planned.cell.corpus == "dialogues" else "real.csv"
        )


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (
            "{format: jsonl, path: a.jsonl, otherwise: {format: csv}}",
            "otherwise.format: 'csv' reads a file or folder: expected one of sample, synthetic",
        ),
        ("{format: jsonl, path: a.jsonl, otherwise: {options: {owner: 3}}}", "otherwise.options.*owner"),
        ("{format: synthetic, otherwise: {}}", "otherwise: goes with a format that reads a file or folder"),
        ("{format: jsonl, otherwise: {}}", "path: this format reads a file or folder, and none is given"),
    ],
)
def test_tickets_that_cannot_stand_in_are_named(tmp_path, corpus, message):
    with pytest.raises(BadInput, match=message):
        plan_study(tmp_path, f"name: s\ntickets: {{corpora: {{one: {corpus}}}}}\n")


def test_the_chain_at_the_published_size_is_the_small_one_but_for_sizes():
    """What one runs the other does; they differ in the network, numbers of tickets, rates and where classifiers train."""
    small, full = (yaml.safe_load((STUDIES / f"{name}.yaml").read_text()) for name in ("thesis", "thesis-full"))
    assert small.keys() == full.keys()
    for key in ("train", "export", "infer", "retrain"):
        text = yaml.safe_dump(full[key]).replace("tickets-owners-published", "tickets-owners")
        assert yaml.safe_load(text.replace("195", "75")) == small[key]
    assert small["tickets"]["splits"]["forty"] == full["tickets"]["splits"]["forty"]
    for key in ("heads", "layers"):
        values = [[grid[key] for grid in study["classify"]["grids"] if key in grid] for study in (small, full)]
        assert values[0] == values[1] and len(values[0]) == 1
    [stand_in] = [corpus["otherwise"]["options"] for corpus in full["tickets"]["corpora"].values()]
    assert (stand_in["tickets"], stand_in["owners"]) == (15578, 144)
