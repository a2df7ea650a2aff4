"""What a study's section `federate` becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from factories import plan_study
from transect.domain.errors import BadInput
from transect.planning.expand import reason_to_skip

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


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("partitions: [dirichlet]", "partition 'dirichlet': expected iid"),
        ("aggregations: [fedavgg]", "did you mean"),
        ("aggregations: [{attackers: 1}]", "a mapping of `name` and options"),
        ("aggregations: [{name: fedavg, no_such: 1}]", "option of aggregation fedavg"),
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


def test_too_few_updates_for_a_rule_are_no_reference_either(tmp_path: Path) -> None:
    plan = plan_study(tmp_path, study("aggregations: [{name: krum, attackers: 1}]"))
    reasons = [
        reason_to_skip(planned.cell)
        for stage in ("federate-reference", "federate")
        for planned in plan.cells[stage].values()
    ]
    assert reasons == ["4 updates at once: expected 5 or more for 1 attackers"] * 2
