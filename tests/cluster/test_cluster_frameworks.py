"""Frameworks, Go and containers with their ranks on two nodes of a real Slurm: one study for all."""

from __future__ import annotations

import re

import pytest

from checkouts import Checkout, environment_python
from framework_rows import ENVIRONMENTS, ON_NODES
from transect.launch.wrapping import program_says

pytestmark = pytest.mark.cluster

GO = [("go", "mpi-allreduce"), ("go+numpy", "mpi-allreduce"), ("go", "published-sendrecv")]
WRAPPERS = ("charliecloud", "podman", "enroot")
# Ranks over MPI meet as their environment's own MPI does it: once for each is enough, for what a
# framework gives to MPI is the same on one machine (tests/workflow/test_shared_framework_rows.py).
MPI_ONCE = [
    *((name, "mpi-allreduce") for name in ("numpy", "torch", "tensorflow", "keras-jax", "keras-2", "mxnet")),
    ("numpy", "mpi-sendrecv"),
]
FEW_ROWS = [row for row in ON_NODES if row in MPI_ONCE or not row[1].startswith("mpi-")]
HEAD = """
name: nodes
plugins: [plugins]
limits: {seconds: 900, memory_mb: 3000, repeats_if_disturbed: 0}
workloads:
  digits-cnn: {epochs: 1, reference_steps: 10}
  iris-mlp: {batch: 12, epochs: 2}
  iris-mlp-ce: {epochs: 2, learning_rate: 0.02}
train:
  repeats: 1
  grids:
"""
ROW = "    - {{workloads: [digits-cnn], frameworks: [{}], strategies: [{}], nodes: [2]}}\n"
OTHERS = """
    - {workloads: [iris-mlp], frameworks: [go, go+numpy], strategies: [mpi-allreduce], nodes: [2]}
    - {workloads: [iris-mlp], frameworks: [go], strategies: [published-sendrecv], nodes: [2], ranks: [2],
       reduce: [sum]}
    - {workloads: [iris-mlp-ce], frameworks: [test-seen], strategies: [mpi-allreduce], nodes: [2],
       containers: [null, charliecloud, podman, enroot]}
"""
# What a rank sees of where it is, beside what numpy computes.
PLUGIN = '''
"""numpy that notes which root file system it runs in."""

import os
import socket

from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.numpy_ import NumpyFramework


@FRAMEWORKS.register("test-seen")
class Seen(NumpyFramework):
    """numpy."""

    def trainer(self, *given, **named):
        print("SEEN", socket.gethostname(), os.path.exists("/etc/debian_version"), flush=True)
        return super().trainer(*given, **named)
'''


def few(make):
    """Return the checkout, and the training records by framework, strategy and container."""
    checkout = make()
    for name in (*ENVIRONMENTS, "trainer-go", "trainer-go-numpy"):
        # Outside: the nodes see no package index.
        environment_python(name, checkout.folder)
    (checkout.folder / "plugins").mkdir()
    (checkout.folder / "plugins" / "seen.py").write_text(PLUGIN)
    checkout.study(HEAD + "".join(ROW.format(*row) for row in FEW_ROWS) + OTHERS)
    # Nothing is measured here: two blocks at a time, each on nodes of its own.
    arguments = ("--jobs", "2", "--config", "study=study.yaml", "system=virtual-cluster")
    checkout.start(*arguments).ends(bound_s=7000)
    found = {}
    for record in Checkout.records(checkout, "nodes", "train").values():
        cell = record["cell"]
        found[cell["framework"], cell["strategy"], cell.get("container")] = record
    return checkout, found


def follows_the_reference(record, *ratios):
    assert record["status"] == "ok", f"{record['message']}\n{record['log_tail']}"
    found = {metric["name"]: metric["value"] for metric in record["metrics"]}
    assert all(found[name] <= 1 for name in ratios), found
    assert len(record["provenance"]["guard_before"]) == 2, "one look at each node"


FEW = pytest.mark.beside.with_args(few)


@FEW
@pytest.mark.parametrize("row", FEW_ROWS, ids="-".join)
def test_ranks_on_two_nodes_follow_the_reference(ran, row):
    _, records = ran
    follows_the_reference(records[(*row, None)], "equality_ratio", "weights_equality_ratio")


@FEW
@pytest.mark.parametrize("row", GO, ids="-".join)
def test_ranks_in_go_follow_the_reference(ran, row):
    _, records = ran
    follows_the_reference(records[(*row, None)], "equality_ratio", "restart_ratio")


def seen_by(ran, container):
    """Return a cell's record, and what its ranks printed of where they were: (node, has Debian)."""
    checkout, records = ran
    record = records["test-seen", "mpi-allreduce", container]
    log = checkout.folder / "results/nodes/train" / record["cell_id"] / "output.log"
    return record, sorted(re.findall(r"SEEN (\S+) (\S+)", log.read_text()))


@FEW
def test_without_a_container_ranks_see_the_nodes_own_root(ran):
    record, seen = seen_by(ran, None)
    assert record["status"] == "ok", record["message"]
    assert len({host for host, _ in seen}) == 2 and {inside for _, inside in seen} == {"True"}


@FEW
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_one_mpi_world_on_two_nodes_each_rank_in_its_container(ran, wrapper):
    _, records = ran
    record = records["test-seen", "mpi-allreduce", wrapper]
    if program_says(wrapper) is None:
        assert (record["status"], record["cause"]) == ("skipped", "missing-dependency")
        assert wrapper in record["message"]
        return
    if wrapper == "enroot":
        pytest.skip("enroot is here: nobody has tried it")
    # The same path as the float64 reference: ranks have really met.
    follows_the_reference(record, "equality_ratio")
    _, seen = seen_by(ran, wrapper)
    assert len({host for host, _ in seen}) == 2, "one rank on each node"
    assert {inside for _, inside in seen} == {"False"}, "the image has no such file"
    assert record["provenance"]["environment"]["wrapper"] == wrapper
