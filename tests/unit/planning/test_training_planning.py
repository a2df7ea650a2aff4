"""What planning asks of training: precisions, layouts, models."""

from __future__ import annotations

from pathlib import Path

import pytest

from factories import plan_study
from transect.domain.errors import BadInput
from transect.planning.plan import StudyPlan
from transect.planning.sources import sources_of
from transect.planning.stage import STAGES
from transect.stages.reference import reference_of
from transect.training.layout import Layout
from transect.training.strategies.mpi_allreduce import MpiAllreduce

GRID = """
name: small
workloads: {{digits-cnn: {{{rule}}}}}
plugins: [plugins]
train:
  repeats: 1
  grids:
    - {{workloads: [digits-cnn], frameworks: [torch], strategies: [mpi-allreduce], {more}}}
"""


def grid_plan(folder: Path, more: str, rule: str = "") -> StudyPlan:
    (folder / "plugins").mkdir(exist_ok=True)
    return plan_study(folder, GRID.format(more=more, rule=rule))


def test_a_precision_that_a_framework_lacks_is_planned_and_its_reference_knows_it(tmp_path):
    made = grid_plan(tmp_path, "precisions: [fp32, fp16]")
    assert len(made.stage("train")) == 2
    (reference,) = made.stage("reference").values()
    assert reference.spec["precisions"] == ["fp16", "fp32"]


def test_optimisers_are_sources_of_what_runs_them_and_layers_of_what_computes_them(tmp_path):
    made = grid_plan(tmp_path, "ranks: [1]")
    chain = "transect/training/frameworks/_numpy_chain.py"
    for stage, computes in (("train", False), ("reference", True), ("dataset", False)):
        (planned,) = made.stage(stage).values()
        files = set(sources_of(planned.cell, STAGES.get(stage), made.system, tmp_path).files)
        optimisers = {name for name in files if name.startswith("transect/training/optimisers/")}
        runs = stage != "dataset"
        assert ("transect/training/optimisers/adamw.py" in optimisers) == runs, stage
        # The cell trains by torch.
        assert (chain in files) == computes, stage


def test_weak_scaling_and_parts_follow_the_replicas(tmp_path, monkeypatch):
    monkeypatch.setattr(MpiAllreduce, "layout", lambda self, cell: Layout(cell.ranks // 2, 2))
    reference_of.cache_clear()
    made = grid_plan(tmp_path, "ranks: [4], scaling: weak, reduce: [sum]")
    (trained,) = made.stage("train").values()
    (reference,) = made.stage("reference").values()
    reference_of.cache_clear()
    assert trained.cell.batch == reference.cell.batch == 2 * 64
    assert reference.cell.shards == 2


def test_a_cell_that_is_skipped_asks_for_no_micro_batches_without_samples(tmp_path):
    """Its reference is computed before: in five parts of four samples it would be no number."""
    asked = "workloads: {images-resnet20: {reference_steps: 2}}\n" + GRID.partition("workloads:")[0]
    made = plan_study(
        tmp_path,
        asked + "train: {repeats: 1, grids: [{workloads: [images-resnet20], frameworks: [numpy], "
        "strategies: [mpi-pipeline], ranks: [2], batches: [4], "
        "options: [{micro_batches: 5}, {micro_batches: 3}]}]}\n",
    )
    found = sorted(planned.cell.micro_batches for planned in made.stage("reference").values())
    assert found == [1, 3]


def test_an_accuracy_of_more_than_one_is_no_target(tmp_path):
    with pytest.raises(BadInput, match=r"digits-cnn\.quality_target': .* at most 1, found 1\.5"):
        grid_plan(tmp_path, "ranks: [1]", "quality_target: 1.5")
    assert grid_plan(tmp_path, "ranks: [1]", "quality_target: 1").stage("train")
