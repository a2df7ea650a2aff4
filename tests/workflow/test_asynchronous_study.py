"""A small study with a parameter server: what can be checked is, what cannot says so, and a death ends all."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.study

# Rank 0 and rank 2 die in the middle of their work; how far the others are by then does not matter.
PLUGIN = """
import os, signal

from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.numpy_ import NumpyFramework, NumpyTrainer


class Dies(NumpyTrainer):
    count = 0

    def _work(self):
        self.count += 1
        if self.count > 9 and int(os.environ["OMPI_COMM_WORLD_RANK"]) == self.rank:
            os.kill(os.getpid(), signal.SIGKILL)

    def forward_backward(self, x, y):
        self._work()
        return super().forward_backward(x, y)

    def update(self, learning_rate):
        self._work()
        super().update(learning_rate)


class DyingServer(Dies):
    rank = 0


class DyingWorker(Dies):
    rank = 2


@FRAMEWORKS.register("test-server-dies")
class ServerDies(NumpyFramework):
    def trainer(self, plan):
        return DyingServer(plan)


@FRAMEWORKS.register("test-worker-dies")
class WorkerDies(NumpyFramework):
    def trainer(self, plan):
        return DyingWorker(plan)
"""
STUDY = """
name: asynchronous
plugins: [async-plugins]
limits: {seconds: 120, repeats_if_disturbed: 0}
workloads: {iris-mlp-ce: {epochs: 12, batch: 12, quality_target: 0.6}}
train:
  repeats: 2
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2, 3]}
    - workloads: [iris-mlp-ce]
      frameworks: [numpy]
      strategies: [async]
      ranks: [1, 3]
      repeats: 2
      options: [{staleness: 0}, {staleness: 2}, {staleness: null}]
    - workloads: [iris-mlp-ce]
      frameworks: [test-server-dies, test-worker-dies]
      strategies: [async]
      ranks: [3]
      repeats: 1
"""
WORKERS = 2


@pytest.fixture(scope="module")
def study(checkout):
    """The project's folder after the study ran to its report."""
    (checkout.folder / "async-plugins").mkdir()
    (checkout.folder / "async-plugins" / "dying.py").write_text(PLUGIN)
    (checkout.folder / "asynchronous.yaml").write_text(STUDY)
    run = checkout.snakemake("--config", "study=asynchronous.yaml")
    assert run.returncode == 0, run.stdout + run.stderr
    return checkout


@pytest.fixture(scope="module")
def records(study) -> list[dict]:
    return list(study.records("asynchronous", "train").values())


def of(records, **axes):
    return [
        one
        for one in records
        if all(one["cell"].get(name) == value for name, value in axes.items())
    ]


def values(record):
    return {one["name"]: one["value"] for one in record["metrics"]}


def test_without_staleness_the_reference_is_followed(records):
    found = [one for one in of(records, strategy="async", framework="numpy", ranks_per_node=3)
             if dict(one["cell"]["options"]).get("staleness") == 0]  # fmt: skip
    assert len(found) == 2
    for record in found:
        assert record["status"] == "ok", record["message"]
        assert values(record)["equality_ratio"] < 1 and values(record)["restart_ratio"] < 1
        assert "not_checkable" not in record["details"]


def test_with_it_nothing_is_called_equal_and_nothing_is_lost(records):
    found = [one for one in of(records, strategy="async", framework="numpy", ranks_per_node=3)
             if dict(one["cell"]["options"]).get("staleness") != 0]  # fmt: skip
    assert len(found) == 4
    for record in found:
        assert record["status"] == "ok", record["message"]
        assert not [name for name in values(record) if "equality" in name]
        details = record["details"]
        assert details["not_checkable"].startswith("asynchronous: ")
        steps = 12 * details["steps_per_epoch"]
        assert details["updates"]["gradients_sent"] == WORKERS * steps
        assert details["updates"]["gradients_applied"] == WORKERS * steps
        assert len({one["weights_crc32"] for one in details["ranks"]}) == 1
        assert record["samples"]["staleness"]["count"] == WORKERS * steps
        assert values(record)["staleness"] <= details["updates"]["largest_staleness"]


def test_a_server_alone_is_skipped_with_its_reason(records):
    alone = of(records, strategy="async", ranks_per_node=1)
    assert len(alone) == 6
    assert {one["message"] for one in alone} == {
        "rank 0 is the server and trains nothing: it takes at least 2 ranks"
    }


@pytest.mark.parametrize(
    ("framework", "who"), [("test-server-dies", "rank 0"), ("test-worker-dies", "rank 2")]
)
def test_a_rank_that_dies_ends_all_and_is_named(records, framework, who):
    [record] = of(records, framework=framework)
    assert (record["status"], record["cause"]) == ("failed", "killed"), record["message"]
    assert who in record["message"]


def test_the_report_judges_by_time_to_quality_and_says_what_was_not_checked(study):
    page = (study.folder / "results" / "asynchronous" / "report.html").read_text()
    for said in (
        "Asynchronous updates", "Staleness of gradients", "not checkable: asynchronous",
        "its gradients are stale by", "Beside training in step",
    ):  # fmt: skip
        assert said in page, said
