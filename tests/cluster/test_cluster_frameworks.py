"""Every way to distribute every framework, with its ranks on two nodes of a real Slurm."""

from __future__ import annotations

import pytest

from checkouts import environment_python
from framework_rows import ENVIRONMENTS, ROWS

# The first run compiles Horovod three times.
pytestmark = [pytest.mark.study, pytest.mark.cluster, pytest.mark.timeout(3600)]

STUDY = """
name: nodes
limits: {{seconds: 900, memory_mb: 3000, repeats_if_disturbed: 0}}
workloads: {{digits-cnn: {{epochs: 1, reference_steps: 10}}}}
train:
  repeats: 1
  grids:
{rows}
"""
ROW = "    - {{workloads: [digits-cnn], frameworks: [{}], strategies: [{}], nodes: [2]}}"


@pytest.fixture(scope="module")
def records(make_checkout, tmp_path_factory):
    """The training records by framework and strategy."""
    for name in ENVIRONMENTS:
        # Outside: the nodes see no package index.
        environment_python(name, tmp_path_factory.mktemp("environment"))
    checkout = make_checkout()
    checkout.study(STUDY.format(rows="\n".join(ROW.format(*row) for row in ROWS)))
    checkout.start("--config", "study=study.yaml", "system=virtual-cluster").ends(bound_s=3000)
    cells = [one for one in checkout.records("nodes").values() if one["stage"] == "train"]
    return {(one["cell"]["framework"], one["cell"]["strategy"]): one for one in cells}


@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_ranks_on_two_nodes_follow_the_reference(records, row):
    record = records[row]
    assert record["status"] == "ok", f"{record['message']}\n{record['log_tail']}"
    found = {one["name"]: one["value"] for one in record["metrics"]}
    assert found["equality_ratio"] <= 1
    assert found["weights_equality_ratio"] <= 1
    assert len(record["provenance"]["guard_before"]) == 2, "one look at each node"
