"""The studies of frameworks, as they are planned: references, environments, batches."""

from __future__ import annotations

from pathlib import Path

from factories import plan_study
from transect.planning.plan import StudyPlan, make_plan
from transect.planning.study import find_study, find_system

GRID = """
name: small
workloads: {{{workloads}}}
train:
  repeats: 2
  grids:
    - {{workloads: [{workload}], frameworks: [torch], strategies: [mpi-allreduce], {more}}}
"""


def torch_plan(tmp_path: Path, workload: str, more: str, workloads: str = "") -> StudyPlan:
    return plan_study(tmp_path, GRID.format(workload=workload, more=more, workloads=workloads))


def references(made) -> list[str]:
    return sorted(cell.id.split("~")[0] for cell in made.stage("reference").values())


def test_batch_norm_and_sums_have_a_reference_for_each_number_of_ranks(tmp_path):
    both = torch_plan(tmp_path, "digits-cnn", "ranks: [1, 2, 4]")
    assert len(references(both)) == 2  # one for each repeat
    cut = torch_plan(tmp_path, "images-resnet20", "ranks: [1, 2]")
    assert len(references(cut)) == 4
    assert sum(".s2" in name for name in references(cut)) == 2
    summed = torch_plan(tmp_path, "digits-cnn", "ranks: [1, 2], reduce: [sum]")
    assert sum(name.endswith((".s2.sum", ".s2.sum.r1")) for name in references(summed)) == 2
    # On one rank a sum is the mean.
    assert sum("sum" in name for name in references(summed)) == 2


def test_weak_scaling_grows_the_global_batch(tmp_path):
    made = torch_plan(tmp_path, "digits-cnn", "ranks: [1, 2, 4], scaling: weak, learning_rate_rule: linear")
    found = {cell.cell.ranks: cell.cell.batch for cell in made.stage("train").values()}
    assert found == {1: 64, 2: 128, 4: 256}
    assert {cell.cell.batch for cell in made.stage("reference").values()} == {64, 128, 256}
    # The parameters stay the workload's: the rule scales from them.
    assert {cell.spec["parameters"]["batch"] for cell in made.stage("train").values()} == {64}


def test_no_reference_where_the_study_says_none(tmp_path):
    made = torch_plan(tmp_path, "digits-cnn", "ranks: [2]", "digits-cnn: {reference_steps: 0}")
    assert made.stage("reference") == {}
    for cell in made.stage("train").values():
        assert set(cell.inputs) == {"data"}


def test_gpu_study_asks_for_1_to_64_gpus_and_tensorflow_with_cuda():
    made = make_plan(find_study("frameworks-gpu"), find_system("example-gpu-cluster"), Path("results"))
    cells = list(made.stage("train").values())
    assert {planned.cell.ranks for planned in cells} == {1, 2, 4, 8, 16, 32, 64}
    assert {planned.cell.precision for planned in cells} == {"fp32", "amp-bf16"}
    alone = {planned.cell.framework: planned.environment for planned in cells if planned.cell.strategy == "single"}
    assert alone == {"torch": "torch", "tensorflow": "tensorflow-cuda", "go-gorgonia": "trainer-go-gorgonia-cuda"}
    gorgonia = {planned.cell.workload for planned in cells if planned.cell.framework == "go-gorgonia"}
    assert gorgonia == {"images-resnet20", *(f"images-resnet{depth}" for depth in (50, 101, 152))}
    for cell_planned in cells:
        checked = cell_planned.cell.workload == "images-resnet20"
        assert ("reference" in cell_planned.inputs) == checked
