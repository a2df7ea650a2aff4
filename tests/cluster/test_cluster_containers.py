"""Two nodes of a real Slurm, one MPI rank on each, inside a container."""

from __future__ import annotations

import json
import re

import pytest

from transect.launch.wrapping import program_says

pytestmark = [pytest.mark.study, pytest.mark.cluster]

STUDY = """
name: boxes
plugins: [plugins]
limits: {seconds: 100, memory_mb: 1500, repeats_if_disturbed: 0}
workloads: {iris-mlp-ce: {epochs: 2, learning_rate: 0.02}}
train:
  repeats: 1
  grids:
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
CONFIG = ("--config", "study=study.yaml", "system=virtual-cluster")


@pytest.fixture(scope="module")
def ran(make_checkout):
    """The records by container, and what ranks printed of where they were."""
    checkout = make_checkout()
    (checkout.folder / "plugins").mkdir()
    (checkout.folder / "plugins" / "seen.py").write_text(PLUGIN)
    checkout.study(STUDY)
    checkout.start(*CONFIG).ends()
    found = {}
    for folder in (checkout.folder / "results" / "boxes" / "train").iterdir():
        record = json.loads((folder / "record.json").read_text())
        log = folder / "output.log"
        seen = re.findall(r"SEEN (\S+) (\S+)", log.read_text()) if log.exists() else []
        found[record["cell"].get("container")] = (record, sorted(seen))
    return found


def test_without_a_container_ranks_see_the_nodes_own_root(ran):
    record, seen = ran[None]
    assert record["status"] == "ok", record["message"]
    assert len(seen) == 2 and {inside for _, inside in seen} == {"True"}


@pytest.mark.parametrize("wrapper", ["charliecloud", "podman"])
def test_one_mpi_world_on_two_nodes_each_rank_in_its_container(ran, wrapper):
    record, seen = ran[wrapper]
    if program_says(wrapper) is None:
        assert (record["status"], record["cause"]) == ("skipped", "missing-dependency")
        pytest.skip(record["message"])
    assert record["status"] == "ok", f"{record['message']}\n{record['log_tail']}"
    assert [host for host, _ in seen] == [host for host, _ in ran[None][1]], "one rank on each node"
    assert {inside for _, inside in seen} == {"False"}, "the image has no such file"
    assert record["provenance"]["environment"]["wrapper"] == wrapper
    # The same path as the float64 reference: ranks have really met.
    (ratio,) = (one["value"] for one in record["metrics"] if one["name"] == "equality_ratio")
    assert ratio <= 1


def test_a_program_that_no_node_has_skips_its_cells(ran):
    record, _ = ran["enroot"]
    if program_says("enroot") is not None:
        pytest.skip("enroot is here")
    assert (record["status"], record["cause"]) == ("skipped", "missing-dependency")
    assert "enroot is not on PATH here" in record["message"]
