"""What a study's section `federate` becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from factories import plan_study
from transect.domain.errors import BadInput
from transect.federated.methods import METHODS
from transect.planning.expand import reason_to_skip
from transect.planning.stage import STAGES
from transect.training.workloads import WORKLOADS

GRID = """
name: s
federate:
  repeats: {repeats}
  grids:
    - workloads: [digits-logistic]
      engines: [loop]
      clients: [8]
      cohorts: [4]
      rounds: [3]
"""


def study(more: str = "", repeats: int = 1) -> str:
    return GRID.format(repeats=repeats) + "".join(f"      {line}\n" for line in more.splitlines())


def cells(plan: Any, stage: str) -> list[str]:
    return sorted(plan.cells[stage])


def test_engines_and_ranks_share_a_reference(tmp_path: Path) -> None:
    plan = plan_study(tmp_path, study("frameworks: [numpy, torch]\nranks: [1, 2]", repeats=2))
    assert len(cells(plan, "federate")) == 8
    # One for each repeat.
    assert len(cells(plan, "federate-reference")) == 2


def test_however_a_partition_or_an_option_is_written_it_is_one_cell(tmp_path: Path) -> None:
    plain = plan_study(tmp_path, study("partitions: [dirichlet-0.5]\naggregations: [fedavg]"))
    other = plan_study(tmp_path, study("partitions: [dirichlet-0.50]\naggregations: [{name: FedAvg}]"))
    assert cells(plain, "federate") == cells(other, "federate")


def test_methods_are_cells_of_their_own_and_plain_ones_keep_their_ids(tmp_path: Path) -> None:
    plain = cells(plan_study(tmp_path, study()), "federate")
    methods = "methods: [plain, fedprox, {name: fedprox, mu: 0.1}, {name: fedprox, mu: 0.5}]"
    plan = plan_study(tmp_path, study(methods))
    found = cells(plan, "federate")
    # The default said aloud is the default.
    assert len(found) == 3 and set(plain) < set(found)
    assert sum(".fedprox." in name for name in found) == 2 and sum("mu0.5" in name for name in found) == 1
    assert len(cells(plan, "federate-reference")) == 3


def test_a_step_with_a_pull_is_exported_for_a_method_that_pulls(tmp_path: Path) -> None:
    plan = plan_study(tmp_path, study("methods: [plain, fedprox, scaffold]").replace("[loop]", "[onnx]"))
    steps = {one.cell.proximal: one.cell.id for one in plan.cells["export-training-step"].values()}
    assert steps.keys() == {False, True} and ".p." in steps[True]


def test_what_clients_keep_needs_rounds(tmp_path: Path) -> None:
    plan = plan_study(tmp_path, study("buffers: [2]\nmethods: [plain, fedprox, ditto]"))
    for stage in ("federate", "federate-reference"):
        told = {planned.cell.method: reason_to_skip(planned.cell) for planned in plan.cells[stage].values()}
        assert told["plain"] is told["fedprox"] is None
        assert told["ditto"] == "clients of ditto keep something from round to round: expected buffers null"


def test_what_a_method_refuses_has_no_reference_either(tmp_path: Path) -> None:
    plan = plan_study(tmp_path, study("methods: [fedprox, fedper, {name: feddyn, alpha: 0.0}]"))
    for stage in ("federate", "federate-reference"):
        cells_ = plan.cells[stage].values()
        told = {one.cell.method: STAGES.get(stage).refuses(one.cell, one.spec) for one in cells_}
        assert told["fedprox"] is None
        assert told["fedper"] == "layers, tensors: all 2 tensors stay with clients, and none is left to learn together"
        assert told["feddyn"] == "feddyn divides by alpha: expected a number above 0, got 0"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("partitions: [dirichlet]", "study.yaml: federate.grids.0.partitions: partition 'dirichlet': expected iid"),
        ("aggregations: [fedavgg]", "did you mean"),
        ("aggregations: [{attackers: 1}]", "a mapping of `name` and options"),
        ("aggregations: [{name: fedavg, no_such: 1}]", "option of aggregation fedavg"),
        ("methods: [fedporx]", "did you mean"),
        ("methods: [{name: fedprox, mu: -1}]", "a number from 0 on"),
        ("methods: [{name: scaffold, mu: 1}]", "option of method scaffold"),
        ("frameworks: [torhc]", "did you mean"),
        ("slowness: [-1]", "greater than or equal to 0"),
        ("buffers: [0]", "greater than or equal to 1"),
        ("hyperparameters: [{bath: 3}]", "hyper-parameter"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        plan_study(tmp_path, study(more))
    assert said in str(caught.value)


def test_a_cohort_is_no_larger_than_there_are_clients(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="9 at once of 8 clients"):
        plan_study(tmp_path, study().replace("cohorts: [4]", "cohorts: [9]"))


def test_programs_have_the_hyper_parameters_of_their_step(tmp_path: Path) -> None:
    more = "runtimes: [c]\nhyperparameters: [{momentum: 0.5}, {learning_rate: 0.5}]"
    plan = plan_study(tmp_path, study(more).replace("[loop]", "[onnx]"))
    reasons = {
        planned.cell.hyperparameters: reason_to_skip(planned.cell) for planned in plan.cells["federate"].values()
    }
    assert reasons == {
        (("momentum", 0.5),): "an exported step has the workload's own momentum: say it under `workloads`",
        (("learning_rate", 0.5),): None,
    }


def test_too_few_updates_for_a_rule_are_no_reference_either(tmp_path: Path) -> None:
    plan = plan_study(tmp_path, study("aggregations: [{name: krum, attackers: 1}]"))
    reasons = [
        reason_to_skip(planned.cell)
        for stage in ("federate-reference", "federate")
        for planned in plan.cells[stage].values()
    ]
    assert reasons == ["4 updates at once: expected 5 or more for 1 attackers"] * 2


def test_last_layers_and_names_are_what_stays() -> None:
    method, model = METHODS.get("fedper"), WORKLOADS.get("digits-cnn").model
    names = [weight.name for weight in model.weight_shapes()]
    last = {name for name in names if name.rpartition(".")[0] == names[-1].rpartition(".")[0]}
    assert set(method.personal({"layers": 1, "tensors": "none"}, model)) == last
    more = set(method.personal({"layers": 2, "tensors": "none"}, model))
    assert last < more < set(names)
    assert set(method.personal({"layers": 2, "tensors": f"{names[0]} {names[-1]}"}, model)) == {names[0], names[-1]}
