"""Predictions: where numbers of the network come from, and what is not measured for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from factories import plan_study
from transect.domain.errors import BadInput
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause
from transect.engine.job import load_job
from transect.engine.payload import refuse
from transect.engine.stage import RUNNERS
from transect.planning.plan import StudyPlan

SYSTEM = """
name: two
nodes: 2
launcher: srun
mpi_launcher: srun
network: fast
networks: {{fast: {{interface: lo, {numbers}}}}}
"""
NUMBERS = "latency_s: 1.0e-6, bytes_per_s: 1.0e9"
STUDY = """
name: told
train: {repeats: 1, grids: [{workloads: [digits-mlp], %s}]}
forecast: {grids: [{}], network: system}
"""


def planned(folder: Path, axes: str, numbers: str = NUMBERS) -> StudyPlan:
    """A study of one training and its prediction from the system's numbers."""
    return plan_study(folder, STUDY % axes, system=SYSTEM.format(numbers=numbers))


NODES = "frameworks: [numpy], strategies: [mpi-allreduce], nodes: [2]"


def test_a_systems_numbers_of_its_network_are_told_and_make_no_training_stale(tmp_path):
    first = planned(tmp_path, NODES)
    second = planned(tmp_path, NODES, "latency_s: 2.0e-6, bytes_per_s: 1.0e9")
    (spec,) = (found.spec for found in first.stage("forecast").values())
    assert spec["network"] == {"latency_s": 1e-6, "bytes_per_s": 1e9}
    assert not first.stage("bench")

    def prints(made: StudyPlan, stage: str) -> list[str]:
        return [found.fingerprint for found in made.stage(stage).values()]

    assert prints(first, "train") == prints(second, "train")
    assert prints(first, "forecast") != prints(second, "forecast")
    with pytest.raises(BadInput, match="network 'fast'"):
        planned(tmp_path, NODES, "latency_s: 1.0e-6")


def test_within_a_node_the_systems_numbers_between_nodes_are_not_taken(tmp_path):
    made = planned(tmp_path, "frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2]")
    (found,) = made.stage("forecast").values()
    assert found.spec["network_from"] == "probe" and "messages" in found.inputs


def test_what_is_not_simulated_is_not_profiled_and_says_why(tmp_path):
    made = planned(tmp_path, "frameworks: [torch], strategies: [single], memories: [recompute]")
    assert not made.stage("profile")
    (found,) = made.stage("forecast").values()
    job = load_job(found.spec, StudyPaths(results=tmp_path / "results", study="told"))
    assert RUNNERS.get("forecast").inputs(job) == []
    refusal = refuse(job)
    assert refusal is not None and refusal.cause is Cause.UNSUPPORTED and "recompute" in refusal.message
