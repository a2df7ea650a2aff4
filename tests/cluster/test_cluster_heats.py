"""Cells that are compared take turns inside a job of a real Slurm: several job steps are alive, and one computes."""

from __future__ import annotations

import pytest

from clustered import config, nothing_left
from transect.engine.heat import FEWEST, MOST

STUDY = """
name: heats
limits: {seconds: 300, memory_mb: 1000, repeats_if_disturbed: 0}
workloads: {iris-mlp-ce: {epochs: 20}}
train:
  repeats: 3
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [single]}
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2], nodes: [1, 2]}
"""


def study(make):
    """Return a checkout in which the study has run."""
    checkout = make()
    checkout.study(STUDY, "heats.yaml")
    return checkout, checkout.start(*config("heats")).ends()


pytestmark = [pytest.mark.cluster, pytest.mark.beside.with_args(study)]


def test_job_steps_of_one_node_take_turns_and_those_of_several_run_alone(ran):
    checkout, _ = ran
    heats: dict[str, dict[str, int]] = {}
    for cell, record in checkout.records("heats", "train").items():
        assert record["status"] == "ok", record["message"]
        turns = record["details"].get("turns")
        assert (turns is None) == (record["cell"]["nodes"] == 2), cell
        if turns is not None:
            heats.setdefault(turns["heat"], {})[record["cell"]["strategy"]] = len(turns["seconds"])
            assert record["details"]["waited_s"] > 0
    assert [set(heat) for heat in heats.values()] == [{"single", "mpi-allreduce"}] * 3
    for heat in heats.values():
        # How many depends on how long a step took in the trials, which whoever else uses the machine may stretch.
        (turns_of_each,) = set(heat.values())
        assert FEWEST <= turns_of_each <= MOST
    nothing_left(checkout)
