"""Retrainings as they are planned: their steps, their problems, what they need, what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from factories import plan_study
from transect.domain.axes.federate import FederateCell
from transect.domain.axes.retrain import RetrainCell
from transect.domain.errors import BadInput
from transect.planning.context import Context
from transect.planning.plan import StudyPlan
from transect.planning.stage import STAGES
from transect.runtimes import RUNTIMES, cannot_train

TRAIN = """
train:
  repeats: 1
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [torch], strategies: [single]}
"""


def retrain_plan(tmp_path: Path, *grids: str, train: str = TRAIN, section: str = "") -> StudyPlan:
    listed = "\n".join(f"    - {{workloads: [iris-mlp-ce], {grid}}}" for grid in grids)
    return plan_study(tmp_path, f"name: again\n{train}retrain:\n{section}  grids:\n{listed}\n")


def cells(made: StudyPlan, stage: str = "retrain") -> list:
    return [planned.cell for planned in made.stage(stage).values()]


def problems(made: StudyPlan) -> list[list[str]]:
    return [[p["name"] for p in planned.spec["problems"]] for planned in made.stage("export-training-step").values()]


def test_what_is_not_said_is_the_workloads_own(tmp_path):
    [cell] = cells(retrain_plan(tmp_path, "runtimes: [python], steps: [20]"))
    assert (cell.optimiser, cell.batch, cell.rate, cell.base_epochs) == ("sgd", 16, "old", None)
    assert cell.id.startswith("iris-mlp-ce.python.cpu.sgd.old.s20.t1.b16.fp32~")


def test_one_step_serves_all_that_compute_with_its_graphs(tmp_path):
    section = "  rates: {fast: {factor: 10}}\n"
    made = retrain_plan(tmp_path, "runtimes: [python, c], rates: [old, fast], repeats: 2", section=section)
    assert len(cells(made)) == 8
    # One problem for each order of rows and rate, whoever computes it.
    assert problems(made) == [[f"r{r}.b16.a1.s100.{rate}" for r in (0, 1) for rate in ("fast", "old")]]
    [step] = made.stage("export-training-step").values()
    rates = {p["name"].rpartition(".")[2]: p["rate"]["factor"] for p in step.spec["problems"]}
    assert rates == {"old": 1.0, "fast": 10.0}
    for planned in made.stage("retrain").values():
        assert planned.inputs["step"] == ("export-training-step", step.id)


def test_who_takes_a_steps_graphs_alone_poses_no_problem(tmp_path):
    made = retrain_plan(tmp_path, "runtimes: [python]")
    [step], [taker] = made.stage("export-training-step").values(), cells(made)
    federated = FederateCell(
        workload="iris-mlp-ce", aggregation="fedavg", partition="iid", clients=4, cohort=2, rounds=1, local_steps=1,
        batch=4, engine="onnx", runtime="c",
    )  # fmt: skip
    stage = STAGES.get("export-training-step")
    for takers in ([federated], [taker, federated]):
        context = Context(made.study, made.file, made.system)
        for by in takers:
            context.note_taker(step.cell, by)
        spec = stage.spec(step.cell, context)
        # Beside a retraining it changes nothing, so that nothing is exported again.
        assert spec["problems"] == (step.spec["problems"] if taker in takers else [])
        assert stage.takes["data"].repeats(spec) == [0]


@pytest.mark.parametrize(
    "axis", ["optimisers: [sgd, adamw]", "base_epochs: [null, 1]", "accumulate: [1, 2]", "clip: [null, 1.0]"]
)
def test_other_graphs_or_bases_are_other_steps(tmp_path, axis):
    assert len(cells(retrain_plan(tmp_path, f"runtimes: [python], {axis}"), "export-training-step")) == 2


def test_a_base_is_the_train_cells_or_made_of_as_many_starts_as_repeats(tmp_path):
    made = retrain_plan(tmp_path, "runtimes: [python], base_epochs: [null, 2], repeats: 3")
    by_base = {planned.cell.base_epochs: planned for planned in made.stage("export-training-step").values()}
    assert by_base[None].inputs["weights"][0] == "train" and "weights" not in by_base[2].inputs
    [data] = made.stage("dataset").values()
    assert data.spec["repeats"] == 3


def test_a_relay_needs_the_environments_of_all_its_runtimes(tmp_path):
    made = retrain_plan(tmp_path, "runtimes: ['rust>javascript>python'], steps: [30]")
    [planned] = made.stage("retrain").values()
    assert planned.cell.ends() == [("rust", 10), ("javascript", 20), ("python", 30)]
    assert planned.id.startswith("iris-mlp-ce.rust+javascript+python.")
    wanted = {RUNTIMES.get(name).environment for name in planned.cell.runtimes}
    assert set(planned.environments) == wanted
    assert planned.spec["other_environments"].keys() == wanted - {planned.environment}


def test_a_changed_rate_changes_the_cells_that_use_it(tmp_path):
    def fingerprints(factor: int) -> dict[str, str]:
        section = f"  rates: {{fast: {{factor: {factor}}}}}\n"
        made = retrain_plan(tmp_path, "runtimes: [python], rates: [old, fast]", section=section)
        return {p.cell.rate: p.fingerprint for p in made.stage("retrain").values()}

    before, after = fingerprints(10), fingerprints(20)
    assert before["fast"] != after["fast"] and before["old"] == after["old"]


REFUSED = {
    "runtimes: [torchscript]": "retrain.grids.0.runtimes: 'torchscript' does not train; those that do: ",
    "runtimes: ['python>pyton']": "unknown runtime 'pyton': did you mean 'python'?",
    "runtimes: ['python>c'], steps: [25]": "retrain.grids.0.steps: 25 cannot be shared by the 2 of 'python>c'",
    "runtimes: [python], rates: [fast]": "retrain.grids.0.rates: unknown rate 'fast'",
    "runtimes: [python], base_epochs: [61]": "base_epochs: 61, and 'iris-mlp-ce' is trained for 60 epochs",
}


@pytest.mark.parametrize("grid", REFUSED)
def test_what_cannot_be_is_told_with_its_key(tmp_path, grid):
    with pytest.raises(BadInput, match=re.escape(REFUSED[grid])):
        retrain_plan(tmp_path, grid)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("  rates: {old: {factor: 2}}\n", "retrain.rates.old: this rate is the workload's own"),
        ("  rates: {a.b: {factor: 2}}\n", "retrain.rates.a.b: expected letters"),
        ("  rates: {fast: {factor: 0}}\n", "rates.fast.factor"),
    ],
)
def test_a_rate_has_a_name_of_its_own_and_a_factor(tmp_path, section, message):
    with pytest.raises(BadInput, match=re.escape(message)):
        retrain_plan(tmp_path, "runtimes: [python]", section=section)


def test_a_trained_base_needs_a_training(tmp_path):
    with pytest.raises(BadInput, match="'iris-mlp-ce' from torch single"):
        retrain_plan(tmp_path, "runtimes: [python]", train="")
    assert cells(retrain_plan(tmp_path, "runtimes: [python], base_epochs: [1]", train=""))


def test_a_plug_in_may_say_what_it_cannot_train(monkeypatch):
    axes = {"workload": "iris-mlp-ce", "runtime": "python", "optimiser": "sgd", "steps": 4, "batch": 4, "accumulate": 2}
    cell = RetrainCell(**axes, provider="cpu")
    assert cannot_train("python", cell) is None
    plug_in = type(RUNTIMES.get("python"))
    monkeypatch.setattr(plug_in, "trains_on", lambda self, cell: f"not {cell.accumulate}")
    assert cannot_train("python", cell) == "not 2"
    monkeypatch.setattr(plug_in, "trains_on", lambda self, cell: None)
    monkeypatch.setattr("transect.runtimes.no_cuda_reason", lambda: "no CUDA device")
    assert cannot_train("python", RetrainCell(**axes, provider="cuda")) == "no CUDA device"
    monkeypatch.setattr(plug_in, "trains", False)
    assert "does not train" in str(cannot_train("python", cell))


def test_where_a_study_measures_until_it_is_known_retrainings_go_on(tmp_path):
    section = "  repeats: 3\n  repeat_until: {equivalence_margin: 5 %, max_repeats: 5}\n"
    made = retrain_plan(tmp_path, "runtimes: [torch-eager, c], optimisers: [sgd, adamw]", section=section)
    planned = [*made.stage("retrain").values()]
    assert {cell.cell.repeat for cell in planned if cell.optional} == {3, 4} and len(planned) == 20
    rule = planned[0].spec["repeat_until"]
    assert (rule["min_repeats"], rule["max_repeats"], rule["metric"]) == (3, 5, "step_time")
    # One for each optimiser: the other runtime beside the framework.
    assert [(pair.metric, pair.varies) for pair in made.analysis_plan.pairs] == [("step_time", ("runtime",))] * 2
    # A step knows the paths of all repeats, and is made for the others.
    assert [len(names) for names in problems(made)] == [5, 5]
    assert not any(cell.optional for cell in made.stage("export-training-step").values())
    grid = "{workloads: [iris-mlp-ce], frameworks: [numpy, torch], strategies: [single]}"
    made = plan_study(tmp_path, f"name: s\ntrain:\n{section}  grids: [{grid}]\n")
    # A reference that only optional trainings take is optional too.
    assert {cell.cell.repeat for cell in made.stage("reference").values() if cell.optional} == {3, 4}
