"""Hyper-parameters as an axis of trainings: which cells they make, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from factories import plan_study
from transect.domain.axes.train import TrainCell, changed_hyperparameters, hyperparameters_of
from transect.domain.cell import axes_of
from transect.domain.errors import BadInput
from transect.planning.plan import StudyPlan

GRID = """
name: small
workloads: {{digits-cnn: {{{own}}}}}
train:
  repeats: 3
  grids:
    - {{workloads: [digits-cnn], frameworks: [torch], strategies: [single], hyperparameters: {changes}{more}}}
"""


def planned(folder: Path, changes: str, more: str = "", own: str = "") -> StudyPlan:
    return plan_study(folder, GRID.format(changes=changes, more=more, own=own))


def changes_of(made: StudyPlan, stage: str = "train") -> list[dict[str, Any]]:
    cells = {one.cell.without_repeat() for one in made.stage(stage).values()}
    return sorted((changed_hyperparameters(cell.get("hyperparameters")) for cell in cells), key=repr)


def test_each_choice_is_a_training_with_a_reference_of_its_own(tmp_path: Path) -> None:
    made = planned(tmp_path, "[{}, {optimiser: AdamW, learning_rate: [0.001, 0.005]}, {schedule: {name: cosine}}]")
    wanted = [
        {"learning_rate": 0.001, "optimiser": "adamw"},
        {"learning_rate": 0.005, "optimiser": "adamw"},
        {"schedule": {"name": "cosine"}},
        {},
    ]
    assert changes_of(made) == sorted(wanted, key=repr)
    assert changes_of(made, "reference") == sorted(wanted, key=repr)
    for one in made.stage("train").values():
        (stage, reference) = one.inputs["reference"]
        assert one.spec["parameters"] == made.stage(stage)[reference].spec["parameters"]
        rate = dict(one.cell.hyperparameters).get("learning_rate", 0.02)
        assert one.spec["parameters"]["learning_rate"] == rate
    (data,) = made.stage("dataset").values()
    assert data.cell.get("hyperparameters") is None


def test_what_is_the_workloads_own_is_the_cell_without_it(tmp_path: Path) -> None:
    made = planned(tmp_path, "[{}, {optimiser: sgd}, {learning_rate: 0.5, momentum: 0.9}]", own="learning_rate: 0.5")
    assert changes_of(made) == [{}]
    assert len(made.stage("train")) == 3


def test_one_training_is_one_cell_however_it_is_written(tmp_path: Path) -> None:
    made = planned(tmp_path, "[{learning_rate: [1, 1.0]}]")
    assert len(made.stage("train")) == 3 and len(made.stage("reference")) == 3
    written = "schedule: cosine}, {schedule: {name: Cosine}}, {schedule: {name: cosine, end: 0, warmup_steps: 0}"
    made = planned(tmp_path, f"[{{{written}}}, {{schedule: {{name: cosine, end: 0.5}}}}]")
    wanted = [{"schedule": {"name": "cosine"}}, {"schedule": {"name": "cosine", "end": 0.5}}]
    assert changes_of(made) == sorted(wanted, key=repr)


def test_what_another_optimiser_takes_otherwise_is_kept(tmp_path: Path) -> None:
    made = planned(
        tmp_path, "[{optimiser: lamb, epsilon: 1.0e-8}, {optimiser: lamb}, {optimiser: lamb, epsilon: 1.0e-6}]"
    )
    found = {one.cell.hyperparameters: one.spec["parameters"]["epsilon"] for one in made.stage("train").values()}
    assert found == {(("optimiser", "lamb"),): 1e-6, (("epsilon", 1e-8), ("optimiser", "lamb")): 1e-8}


def test_the_path_of_a_function_is_in_no_cell(tmp_path: Path) -> None:
    (tmp_path / "rate.py").write_text("def go(step, steps):\n    return 1.0\n", encoding="utf-8")
    made = planned(tmp_path, "[{schedule: 'rate.py:go'}]")
    assert changes_of(made) == [{"schedule": "rate.py:go"}]
    assert all(one.spec["named"] == [str(tmp_path / "rate.py")] for one in made.stage("train").values())


def test_options_of_a_schedule_are_named_in_its_label() -> None:
    given = hyperparameters_of({"schedule": {"name": "cosine", "end": 2, "warmup_steps": 20}, "learning_rate": 0.5})
    assert (
        axes_of(TrainCell)["hyperparameters"].label(given)
        == "learning rate 0.5, schedule cosine (end 2, warmup steps 20)"
    )


def test_null_switches_off_what_the_workload_sets(tmp_path: Path) -> None:
    made = planned(tmp_path, "[{}, {clip_norm: null}, {clip_norm: [0.5, 1.0]}]", own="clip_norm: 1.0")
    assert changes_of(made) == sorted([{}, {"clip_norm": None}, {"clip_norm": 0.5}], key=repr)
    off = [one for one in made.stage("train").values() if dict(one.cell.hyperparameters) == {"clip_norm": None}]
    assert {one.spec["parameters"]["clip_norm"] for one in off} == {None} and "clip_normnone" in off[0].id


def test_each_change_is_compared_with_the_workloads_own(tmp_path: Path) -> None:
    made = planned(tmp_path, "[{}, {optimiser: adam}, {optimiser: lamb}]", ", ranks: [1]")
    pairs = [pair for pair in made.analysis_plan.pairs if "twin.hyperparameters" in pair.rules]
    own = {one.cell.without_repeat().id for one in made.stage("train").values() if not one.cell.hyperparameters}
    assert len(pairs) == 2 and {pair.base for pair in pairs} == own
    assert all(pair.varies == ("hyperparameters",) for pair in pairs)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("[{batch: 32}]", "'batch'"),
        ("[{learning_rat: 0.1}]", "did you mean 'learning_rate'"),
        ("[{learning_rate: fast}]", "'train.grids.0.hyperparameters.learning_rate': Input should be a valid number"),
        ("[{optimiser: adamm}]", "adamm"),
        ("[{optimiser: '{'}]", "optimiser '{'"),
        ("[{optimiser: adam, momentum: 0.5}]", "hyper-parameter of adam 'momentum'"),
        ("[{schedule: {name: cosine, warm: 3}}]", "'warm'"),
        ("[{learning_rate: []}]", "learning_rate: expected at least one value"),
        ("[]", "at least 1 item"),
    ],
)
def test_what_a_step_does_not_depend_on_or_know_is_refused(tmp_path: Path, changes: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        planned(tmp_path, changes)
    assert said in str(caught.value)


def test_a_study_may_set_what_the_optimiser_of_a_cell_reads(tmp_path: Path) -> None:
    made = planned(tmp_path, "[{}, {optimiser: adam}]", own="beta2: 0.99, momentum: 0.5")
    assert {one.spec["parameters"]["beta2"] for one in made.stage("train").values()} == {0.99}
    with pytest.raises(BadInput, match="of adam or sgd 'alpha'"):
        planned(tmp_path, "[{}, {optimiser: adam}]", own="alpha: 0.9")
    with pytest.raises(BadInput, match="hyper-parameter of adam 'momentum'"):
        planned(tmp_path, "[{optimiser: adam}]", own="momentum: 0.5")


def test_exports_take_the_workloads_own_weights(tmp_path: Path) -> None:
    study = GRID.format(changes="[{optimiser: adam}]", more="", own="")
    with pytest.raises(BadInput, match="which no train grid has"):
        plan_study(tmp_path, f"{study}\nexport: {{workloads: [digits-cnn]}}\n")


def test_a_plan_of_the_memory_knows_one_optimiser(tmp_path: Path) -> None:
    made = planned(tmp_path, "[{optimiser: adam}]", ", memories: [planned], memory_budgets: [16000000]")
    assert not made.stage("memory-plan")


def test_a_mapping_is_kept_as_text_that_stands_for_it() -> None:
    given = {"schedule": {"warmup_steps": 4, "name": "cosine"}, "learning_rate": 0.5}
    assert changed_hyperparameters(hyperparameters_of(given)) == given
    assert hyperparameters_of(given) == hyperparameters_of(dict(reversed(given.items())))
