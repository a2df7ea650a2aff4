"""Ranks in Go, alone and beside ranks in numpy, on two nodes of a real Slurm."""

from __future__ import annotations

import pytest

from checkouts import environment_python

pytestmark = [pytest.mark.study, pytest.mark.cluster, pytest.mark.timeout(1200)]

STUDY = """
name: nodes
limits: {seconds: 300, memory_mb: 3000, repeats_if_disturbed: 0}
workloads: {iris-mlp: {batch: 12, epochs: 2}}
train:
  repeats: 1
  grids:
    - {workloads: [iris-mlp], frameworks: [go, go+numpy], strategies: [mpi-allreduce], nodes: [2]}
    - {workloads: [iris-mlp], frameworks: [go], strategies: [published-sendrecv], nodes: [2], ranks: [2],
       reduce: [sum]}
"""


@pytest.fixture(scope="module")
def records(make_checkout, tmp_path_factory):
    """The training records by framework and strategy."""
    for name in ("trainer-go", "trainer-go-numpy"):
        # Outside: the nodes see no package index.
        environment_python(name, tmp_path_factory.mktemp("environment"))
    checkout = make_checkout()
    checkout.study(STUDY)
    checkout.start("--config", "study=study.yaml", "system=virtual-cluster").ends(bound_s=900)
    cells = [one for one in checkout.records("nodes").values() if one["stage"] == "train"]
    return {(one["cell"]["framework"], one["cell"]["strategy"]): one for one in cells}


@pytest.mark.parametrize(
    "row", [("go", "mpi-allreduce"), ("go+numpy", "mpi-allreduce"), ("go", "published-sendrecv")],
    ids="-".join,
)  # fmt: skip
def test_ranks_on_two_nodes_follow_the_reference(records, row):
    record = records[row]
    assert record["status"] == "ok", f"{record['message']}\n{record['log_tail']}"
    found = {one["name"]: one["value"] for one in record["metrics"]}
    assert found["equality_ratio"] <= 1 and found["restart_ratio"] <= 1
    assert len(record["provenance"]["guard_before"]) == 2, "one look at each node"
