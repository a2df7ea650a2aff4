"""Every framework with every way to distribute it: two real ranks follow the float64 reference."""

from __future__ import annotations

import json

import pytest

from framework_rows import ROWS, SINGLE

# The first run compiles Horovod three times.
pytestmark = [pytest.mark.study, pytest.mark.timeout(3600)]

# What no wheel of this machine can do, with the reason that the record has to give.
SKIPPED = {
    ("torch", "ddp-nccl"): "nccl works between GPUs",
    ("torch", "ddp-mpi"): "built from source with MPI",
    ("tensorflow", "multiworker-nccl"): "works on cuda",
    ("numpy", "ddp-gloo"): "of torch, not of numpy",
    ("keras-torch", "horovod-mpi"): "keras-torch",
}

# A residual net with batch norm, so that every kind of layer is in it; eight images a class.
STUDY = """
name: rows
limits: {{seconds: 240}}
workloads:
  images-resnet20:
    batch: 12
    epochs: 3
    reference_steps: 8
    dataset_options: {{generate: 8}}
train:
  repeats: 1
  grids:
    - {{workloads: [images-resnet20], frameworks: [{single}], strategies: [single]}}
{rows}
"""
ROW = "    - {{workloads: [images-resnet20], frameworks: [{}], strategies: [{}], ranks: [2]}}"


@pytest.fixture(scope="module")
def records(checkout):
    """The training records by framework and strategy."""
    rows = "\n".join(ROW.format(*row) for row in [*ROWS, *SKIPPED])
    study = STUDY.format(single=", ".join(SINGLE), rows=rows)
    (checkout.folder / "rows.yaml").write_text(study)
    run = checkout.snakemake("--config", "study=rows.yaml", timeout=3000)
    assert run.returncode == 0, run.stderr
    found = {}
    for path in checkout.folder.glob("results/rows/train/*/record.json"):
        record = json.loads(path.read_text())
        found[record["cell"]["framework"], record["cell"]["strategy"]] = record
    return found


def metrics(record):
    return {one["name"]: one["value"] for one in record["metrics"]}


@pytest.mark.parametrize(("framework", "strategy"), [*((n, "single") for n in SINGLE), *ROWS])
def test_row_follows_the_reference(records, framework, strategy):
    record = records[framework, strategy]
    assert record["status"] == "ok", f"{record['message']}\n{record['log_tail']}"
    found = metrics(record)
    # Loss at every step, and all weights with the running statistics of batch norm after the last.
    assert found["equality_ratio"] <= 1
    assert found["weights_equality_ratio"] <= 1
    assert record["details"]["reference_steps"] == 8
    # Handed weights, momentum and number of updates of the fourth step, it goes on as the reference.
    assert record["details"]["restarts_not_checkable"] is None
    (restart,) = record["details"]["restarts"]
    assert (restart["step"], restart["steps"], restart["sharp"]) == (4, 4, True)
    assert found["restart_ratio"] == restart["ratio"] <= 1
    assert found["startup_time"] > 0 and found["first_step_time"] > 0
    parts = [found.get(f"{part}_time") for part in ("compute", "communication", "input")]
    if None not in parts:
        assert sum(parts) <= found["step_time"] * 1.5
    assert found["cpu_utilisation"] > 0


@pytest.mark.parametrize("row", SKIPPED)
def test_what_cannot_run_here_says_why(records, row):
    record = records[row]
    assert record["status"] == "skipped" and record["cause"] == "unsupported"
    assert SKIPPED[row] in record["message"]


def test_ranks_cut_the_batch_of_a_reference_with_batch_norm(records):
    alone = records["torch", "single"]["details"]["reference"]
    two = records["torch", "ddp-gloo"]["details"]["reference"]
    assert ".s2" in two and alone != two
