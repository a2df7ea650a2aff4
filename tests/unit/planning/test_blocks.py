"""Allocation blocks: which cells share a job, and what the job asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from factories import plan_study
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.planning.blocks import make_blocks, resources
from transect.planning.plan import StudyPlan, make_plan
from transect.planning.stage import STAGES
from transect.planning.study import find_study, find_system

STUDY = """
name: shapes
limits: {seconds: 110, memory_mb: 900, repeats_if_disturbed: 0}
train:
  repeats: 3
  grids:
    - {workloads: [iris-mlp, digits-cnn], frameworks: [numpy], strategies: [single]}
    - {workloads: [iris-mlp], frameworks: [numpy], strategies: [mpi-allreduce], nodes: [1, 3],
       ranks: [2]}
    - {workloads: [iris-mlp], frameworks: [torch], strategies: [ddp-nccl], device: cuda, ranks: [4]}
ingest: {paths: [log]}
"""
SYSTEM = """
name: fit
scheduler: slurm
launcher: srun
mpi_launcher: srun
nodes: 4
cores_per_node: 8
gpus_per_node: 4
"""


def shapes_plan(tmp_path: Path, study: str = STUDY, system: str = SYSTEM) -> StudyPlan:
    (tmp_path / "log").touch()
    return plan_study(tmp_path, study, system=system)


def test_cells_of_one_shape_and_workload_share_a_job(tmp_path):
    made = shapes_plan(tmp_path)
    blocks = {block.id: block for block in make_blocks(made)}
    assert {name: len(block.cells) for name, block in blocks.items()} == {
        "ingest.n1": 1,
        "prepare.n1": 2 + 6,
        "train.digits-cnn.n1": 3,
        "train.iris-mlp.n1": 6,
        "train_gpu.iris-mlp.n1.g4": 3,
        "train.iris-mlp.n3": 3,
    }
    # What feeds others comes first; the rest in the study's shuffled order.
    assert [p.cell.stage for p in blocks["prepare.n1"].cells] == ["dataset"] * 2 + ["reference"] * 6
    orders = [p.order for p in blocks["prepare.n1"].cells[2:]]
    assert orders == sorted(orders)
    # 6 cells of 110 s and 5 s around each, and the system's 5 minutes.
    assert blocks["train.iris-mlp.n1"].minutes == 12 + 5
    every = [p.id for block in blocks.values() for p in block.cells]
    assert len(every) == len(set(every)) == sum(1 for _ in made)


def test_without_a_scheduler_a_shape_is_one_block_that_asks_for_nothing(tmp_path):
    made = shapes_plan(tmp_path, system="name: laptop\ncores_per_node: 2\n")
    blocks = make_blocks(made)
    # What takes turns is in one block; several nodes, which a list of hosts may give, and a GPU's cells are apart.
    names = ["train.iris-mlp.n1", "train_gpu.iris-mlp.n1.g4", "train.iris-mlp.n3"]
    made = shapes_plan(tmp_path, system="name: laptop\ncores_per_node: 2\ngpus_per_node: 4\n")
    assert [b.id for b in make_blocks(made) if "iris-mlp" in b.id] == names
    assert all(resources(b, made.system, made.study.limits) == {} for b in blocks)


def test_cells_that_take_turns_stand_together_repeat_by_repeat(tmp_path):
    made = shapes_plan(tmp_path)
    [block] = [block for block in make_blocks(made) if block.id == "train.iris-mlp.n1"]
    assert [p.cell.repeat for p in block.cells] == [0, 0, 1, 1, 2, 2]
    assert {p.heat for p in block.cells} == {block.cells[0].heat} != {""}
    # Cut where a job ends, never between two that take turns.
    system = SYSTEM + "cells_per_job: {}\n"
    for room, sizes in ((5, [4, 2]), (3, [2, 2, 2]), (1, [1] * 6)):
        blocks = make_blocks(shapes_plan(tmp_path, system=system.format(room)))
        assert [len(b.cells) for b in blocks if b.id.startswith("train.iris-mlp.n1")] == sizes


def test_a_block_ends_where_its_time_limits_do_not_fit(tmp_path):
    made = shapes_plan(tmp_path, system=SYSTEM + "block_minutes: 4\n")
    sizes = [len(b.cells) for b in make_blocks(made) if b.id.startswith("train.iris-mlp.n1.")]
    assert sizes == [2, 2, 2]
    gpu = [len(b.cells) for b in make_blocks(made) if b.id.startswith("train_gpu.iris-mlp.n1.g4.")]
    assert gpu == [2, 1]
    alone = shapes_plan(tmp_path, system=SYSTEM + "cells_per_job: 1\n")
    assert {len(block.cells) for block in make_blocks(alone)} == {1}


def test_what_a_job_asks_for(tmp_path):
    made = shapes_plan(tmp_path)
    blocks = {block.id: block for block in make_blocks(made)}
    limits = made.study.limits
    assert resources(blocks["train.iris-mlp.n3"], made.system, limits) == {
        "nodes": 3,
        "tasks": 3,
        "cpus_per_task": 2,
        "runtime": 11,
        "mpi": "",
        "mem_mb": 1600,
        "slurm_extra": "--ntasks-per-node=1",
    }
    where = "account: a\npartition: p\ngpu_partition: g\ngpu_type: h100\nqos: q\nconstraint: c\n"
    whole = shapes_plan(tmp_path, system=SYSTEM + where + "exclusive: true\nmemory_mb_per_node: 5000\n")
    blocks = {block.id: block for block in make_blocks(whole)}
    assert resources(blocks["train_gpu.iris-mlp.n1.g4"], whole.system, limits) == {
        "nodes": 1,
        "tasks": 1,
        "cpus_per_task": 8,
        "runtime": 11,
        "mpi": "",
        "mem_mb": 5000,
        "slurm_partition": "g",
        "slurm_account": "a",
        "qos": "q",
        "constraint": "c",
        "gres": "gpu:h100:4",
        "tasks_per_gpu": 0,
        "slurm_extra": "--exclusive --ntasks-per-node=1",
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nodes: 4", "nodes: 2", r"asks for 3 nodes, system 'fit' has nodes: 2"),
        ("gpus_per_node: 4", "gpus_per_node: 2", r"asks for 4 gpus per node, .* gpus_per_node: 2"),
        (
            "nodes: 4",
            "nodes: 4\nmemory_mb_per_node: 1000",
            r"900 MB on a node and its runner 700.* 1000: lower limits\.memory_mb in the study to 300,",
        ),
    ],
)
def test_what_no_node_can_hold_is_refused(tmp_path, old, new, message):
    with pytest.raises(BadInput, match=message):
        make_blocks(shapes_plan(tmp_path, system=SYSTEM.replace(old, new)))


@pytest.mark.parametrize("name", ["quick", "virtual-cluster"])
def test_the_first_studies_fit_the_virtual_cluster_as_it_is_documented(name):
    system = find_system("virtual-cluster")
    assert make_blocks(make_plan(find_study(name), system, Path("results")))


def test_a_block_is_stale_when_a_cell_is_and_not_when_its_queue_changes(tmp_path):
    def prints(**change: str) -> dict[str, str]:
        study, system = STUDY, SYSTEM
        for old, new in change.items():
            study, system = study.replace(old, new), system.replace(old, new)
        made = shapes_plan(tmp_path, study, system)
        return {block.id: block.fingerprint for block in make_blocks(made)}

    first = prints()
    assert prints(seconds="seconds") == first
    assert prints(gpus_per_node="account: other\ngpus_per_node") == first
    changed = prints(**{"name: shapes": "name: shapes\nworkloads: {digits-cnn: {momentum: 0.5}}"})
    stale = {name for name in first if changed[name] != first[name]}
    assert stale == {"prepare.n1", "train.digits-cnn.n1"}


def test_networks_must_be_the_systems(tmp_path):
    study = STUDY.replace("nodes: [1, 3],", "nodes: [1, 3], networks: [ib],")
    with pytest.raises(BadInput, match=r"unknown network of system fit 'ib': Known: none"):
        shapes_plan(tmp_path, study)
    system = SYSTEM + "networks: {ib: {interface: ib0, variables: {UCX_TLS: rc}}}\n"
    made = shapes_plan(tmp_path, study, system)
    cells = [p for p in made if p.cell.network]
    assert {p.spec["system"]["network"]["interface"] for p in cells} == {"ib0"}
    assert all(".ib" in p.id for p in cells)


def test_what_reads_files_runs_where_snakemake_runs(tmp_path):
    made = shapes_plan(tmp_path)
    local = {block.id for block in make_blocks(made) if block.shape.local}
    assert local == {"ingest.n1"}
    (ingest,) = (block for block in make_blocks(made) if block.id == "ingest.n1")
    # No node is asked for.
    assert resources(ingest, made.system, made.study.limits) == {}


def test_repeats_of_disturbed_cells_have_room(tmp_path):
    text = STUDY.replace("repeats_if_disturbed: 0", "repeats_if_disturbed: 2, repeat_seconds: 50")
    (block,) = (b for b in make_blocks(shapes_plan(tmp_path, text)) if b.id == "train.digits-cnn.n1")
    assert block.minutes == -(-3 * (110 + 2 * 50 + 5) // 60) + 5


@pytest.mark.parametrize(("provider", "gpus"), [("cpu", 0), ("cuda", 1)])
def test_a_runtime_asks_for_the_gpu_of_its_provider(provider, gpus):
    cell = Cell.of(stage="infer", workload="digits-cnn", runtime="python", provider=provider, batch=1)
    assert STAGES.get("infer").gpus(cell) == gpus
