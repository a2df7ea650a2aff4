"""A parameter server: what it applies, in which order it may, and that nothing is lost; on real ranks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from rank_runs import Training, arrays

from transect.domain.axes.train import TrainCell
from transect.domain.errors import BadInput
from transect.stages.train.result_updates import Updates
from transect.training.frameworks import ModelPlan, RankFiles
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.inputs import StoredBatches, load_data, load_weights
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES, strategy_options
from transect.training.trainer_plan import write_trainer_plan
from transect.training.workloads import WORKLOADS, Parameters, model_of

# In `slow-rank-2` the server takes requests in an order of its own: rank 2 fetches, then rank 1 does all
# that it may before rank 2's gradient is taken. It is what a slow rank does, without any clock.
PLUGINS = """
import os, signal, time

from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.frameworks.numpy_ import NumpyFramework
from transect.training.strategies import STRATEGIES
from transect.training.strategies._parameter_server import Server
from transect.training.strategies.async_ import Async

STEPS = 18


class InOrder(Server):
    def source(self):
        applied = [worker for _, _, worker in self._log]
        if 2 not in self._lead and applied.count(2) < STEPS:
            return 2
        return 1 if 1 not in self._waiting and applied.count(1) < STEPS else 2


@STRATEGIES.register("slow-rank-2")
class SlowRank2(Async):
    server = InOrder


def end(rank):
    if int(os.environ["OMPI_COMM_WORLD_RANK"]) == rank:
        os.kill(os.getpid(), signal.SIGKILL)


class Dies(NumpyTrainer):
    rank, count = 0, 0

    def forward_backward(self, x, y):
        # The server's own first one makes its buffers.
        self.count += 1
        if self.count > 5:
            end(self.rank)
        return super().forward_backward(x, y)

    def update(self, learning_rate):
        self.count += 1
        if self.count > 5:
            end(self.rank)
        super().update(learning_rate)


class RankDies(NumpyFramework):
    rank = 0

    def trainer(self, plan):
        trainer = Dies(plan)
        trainer.rank = self.rank
        return trainer


@FRAMEWORKS.register("server-dies")
class ServerDies(RankDies):
    pass


@FRAMEWORKS.register("worker-dies")
class WorkerDies(RankDies):
    rank = 2


class Slow(NumpyTrainer):
    def forward_backward(self, x, y):
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass
        return super().forward_backward(x, y)


@FRAMEWORKS.register("slow-steps")
class SlowSteps(NumpyFramework):
    def trainer(self, plan):
        return Slow(plan)


class Faulty(NumpyTrainer):
    def forward_backward(self, x, y):
        if int(os.environ["OMPI_COMM_WORLD_RANK"]) == 1:
            raise MemoryError("no room for a gradient")
        return super().forward_backward(x, y)


@FRAMEWORKS.register("worker-faults")
class WorkerFaults(NumpyFramework):
    def trainer(self, plan):
        return Faulty(plan)
"""
BATCH, EPOCHS, STEPS = 12, 2, 18


@pytest.fixture(scope="module")
def training(base_python, tmp_path_factory):
    rule = {
        "batch": BATCH,
        "epochs": EPOCHS,
        "loss": "cross-entropy",
        "momentum": 0.9,
        "weight_decay": 1e-3,
        "learning_rate": 0.02,
    }
    made = Training(python=base_python, folder=tmp_path_factory.mktemp("async"), plugins=PLUGINS, rule=rule)
    made.prepare()
    return made


@pytest.fixture(scope="module")
def reference(training):
    return training.reference(["fp64"])


def trained(training, staleness, *, ranks=3, strategy="async", workers="all", **axes):
    options = strategy_options("async", {"staleness": staleness, "workers": workers}, "here")
    axes = {"precision": "fp64", "options": options} | axes
    return training.train(ranks, strategy=strategy, **axes)[0]


def of_server(out):
    return arrays(out / "rank-000.npz")


def replayed(training, log, workers):
    """Return the weights after the same gradients, each at the weights that it was computed at, in one process."""
    parameters = Parameters.model_validate(training.rule)
    folder = training.folder / "data"
    model = model_of(WORKLOADS.get(training.workload))
    plan = ModelPlan(
        model=model,
        parameters=parameters,
        weights=load_weights(folder, 0),
        batch=BATCH,
        precision="fp64",
        device="cpu",
        threads=1,
    )
    server, computing = NumpyTrainer(plan), NumpyTrainer(plan)
    layout = Layout(workers, servers=1)
    batches: dict[int, Any] = {
        worker: StoredBatches(computing, load_data(folder, 0), BATCH, layout.share(worker))  # type: ignore[arg-type]
        for worker in range(1, workers + 1)
    }
    done = dict.fromkeys(batches, 0)
    path = [server.weights()]
    for number, (staleness, worker) in enumerate(zip(log["staleness"], log["applied_worker"], strict=True)):
        computing.load(path[number - int(staleness)])
        [(x, y)] = batches[int(worker)].steps(done[int(worker)], 1)
        done[int(worker)] += 1
        computing.forward_backward(x, y)
        server.set_gradient(computing.gradient().copy())
        server.update(parameters.learning_rate / workers)
        path.append(server.weights())
    return path[-1]


def test_without_staleness_the_path_is_the_references_in_the_run_and_in_restarts(training, reference):
    out, _ = training.train(3, reference=reference, strategy="async", precision="fp64", options=(("staleness", 0),))
    assert (of_server(out)["staleness"] == 0).all() and (of_server(out)["lead"] == 0).all()
    merged = training.merge(out, reference)
    assert merged["status"] == "ok", merged
    assert merged["metrics"]["equality_ratio"] <= 1 and merged["metrics"]["restart_ratio"] <= 1
    assert "not_checkable" not in merged["details"]
    counted = merged["details"]["updates"]
    assert counted["gradients_sent"] == counted["gradients_applied"] == 2 * STEPS
    assert {"compute_time", "communication_time"} <= set(merged["metrics"])


@pytest.mark.parametrize(("staleness", "ranks"), [(1, 3), (None, 4)])
def test_every_gradient_is_applied_once_at_the_weights_that_it_was_computed_at(training, reference, staleness, ranks):
    out = trained(training, staleness, ranks=ranks)
    log, end = of_server(out), arrays(out / "weights.npz")
    expected = replayed(training, log, ranks - 1)
    for name, array in expected.items():
        assert np.abs(end[name] - array).max() <= 1e-12 * np.abs(array).max(), name
    merged = training.merge(out, reference)
    assert merged["status"] == "ok", merged
    assert merged["details"]["not_checkable"].startswith("asynchronous: ")
    counted = merged["details"]["updates"]
    assert counted["gradients_sent"] == counted["gradients_applied"] == (ranks - 1) * STEPS
    assert counted["staleness_bound"] == staleness
    # Nothing says equal of what is not.
    assert not [name for name in merged["metrics"] if "equality" in name or "deviation" in name]
    # No rank's split is a part of what the server tells.
    assert "communication_share" not in merged["metrics"] and merged["metrics"]["step_time"] > 0
    assert {"staleness", "lead", "applied_worker", "rank_compute_time"} <= set(merged["samples"])
    assert merged["metrics"]["staleness"] == np.median(log["staleness"])


@pytest.mark.parametrize(
    ("staleness", "of_rank_2"),
    [
        (0, [0] * STEPS),
        # Rank 1 goes two steps ahead and one more is on its way; then the two take turns, and at last rank 2 is alone.
        (2, [3, *[1] * (STEPS - 3), 0, 0]),
        (None, [STEPS, *[0] * (STEPS - 1)]),
    ],
)
def test_a_slow_rank_makes_the_staleness_that_the_bound_allows(training, staleness, of_rank_2):
    if staleness == 0:
        # All step together, whoever comes first.
        log = of_server(trained(training, staleness, strategy="async"))
    else:
        log = of_server(trained(training, staleness, strategy="slow-rank-2"))
        expected = replayed(training, log, 2)
        assert expected.keys()
    assert log["staleness"][log["applied_worker"] == 2].tolist() == of_rank_2
    assert log["staleness"][log["applied_worker"] == 1].tolist() == [0] * STEPS
    most = {0: 0, 2: 2, None: STEPS - 1}[staleness]
    assert log["lead"].max() == most


def test_the_sum_of_gradients_is_that_of_the_reference_too(training):
    reference = training.reference(["fp64"], reduce="sum", shards=2)
    out = trained(training, 0, reduce="sum")
    merged = training.merge(out, reference)
    assert merged["status"] == "ok" and merged["metrics"]["equality_ratio"] <= 1, merged


# 18 steps in spans of 6: so many gradients are each worker's.
COMING = "1-3-2"
OF_EACH_WORKER = [6 * 3 + 6 + 6 * 2, 6 + 6, 6]


def test_while_workers_come_and_go_the_synchronous_path_stays_the_references(training):
    reference = training.reference(["fp64"], shards=3)
    options = strategy_options("async", {"staleness": 0, "workers": COMING}, "here")
    out, _ = training.train(4, reference=reference, strategy="async", precision="fp64", options=options)
    merged = training.merge(out, reference)
    assert merged["status"] == "ok", merged
    assert merged["metrics"]["equality_ratio"] <= 1 and merged["metrics"]["restart_ratio"] <= 1
    updates = merged["details"]["updates"]
    assert [(span["workers"], span["steps"]) for span in updates["spans"]] == [(1, 6), (3, 6), (2, 6)]
    assert [rank.get("gradients_sent") for rank in merged["details"]["ranks"]] == [None, *OF_EACH_WORKER]
    # What a worker waited while it was away is in no step.
    assert merged["metrics"]["step_time"] > 0 and "communication_time" not in merged["metrics"]


@pytest.mark.parametrize("staleness", [1, None])
def test_whoever_is_there_every_part_is_applied_once_and_quality_is_measured(training, reference, staleness):
    out = trained(training, staleness, ranks=4, workers=COMING)
    log = of_server(out)
    assert np.bincount(log["applied_worker"].astype(int)).tolist() == [0, *OF_EACH_WORKER]
    # Nobody pushes before it is called, and that is when all of the steps before are applied.
    assert np.flatnonzero(log["applied_worker"] != 1).min() >= 6 * 3
    merged = training.merge(out, reference)
    assert merged["status"] == "ok", merged
    assert "accuracy" in merged["metrics"] and merged["details"]["not_checkable"].startswith("asynchronous: ")
    assert ("spans" in merged["details"]["updates"]) == (staleness is not None)


def test_a_worker_that_is_away_sleeps_while_the_others_train(training):
    """Its processor time is far below theirs, though it is there all the time."""
    out = trained(training, 2, ranks=4, workers="3-1-1-1-1-1", framework="slow-steps")
    usage = [json.loads((out / f"rank-{rank:03}.json").read_text())["usage"] for rank in range(4)]
    assert usage[3]["cpu_s"] < usage[1]["cpu_s"] / 2, usage


def test_fewer_steps_than_spans_are_refused(training):
    options = strategy_options("async", {"workers": "1-2" + "-1-2" * 15}, "here")
    out, _ = training.train(3, 1, strategy="async", options=options)
    error = json.loads((out / "rank-000.error.json").read_text())
    assert (error["cause"], error["message"]) == (
        "bad-input",
        "BadInput: 32 numbers of workers for a training of 18 steps",
    )
    spec = json.loads((out / "spec.json").read_text())
    cell, rule = TrainCell.of(**spec["cell"] | {"framework": "go"}), Parameters.model_validate(spec["parameters"])
    with pytest.raises(BadInput, match="32 numbers of workers for a training of 18 steps"):
        write_trainer_plan(cell, rule, training.folder / "data", RankFiles(plan=out / "plan", out=out, programs=None))


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ({}, None),
        ({"ranks_per_node": 3}, "a server and at most 3 workers are 4 ranks, not 3"),
        ({"ranks_per_node": 5}, "a server and at most 3 workers are 4 ranks, not 5"),
        ({"workload": "digits-resnet50"}, "running statistics"),
        ({"input": "files"}, "files are read ahead"),
    ],
)
def test_what_workers_that_come_and_go_cannot_do_is_refused(axes, reason):
    options = strategy_options("async", {"workers": COMING}, "here")
    cell = {"workload": "digits-mlp", "framework": "numpy", "strategy": "async", "ranks_per_node": 4, "batch": 60}
    found = STRATEGIES.get("async").supports(TrainCell.of(stage="train", options=options, **cell | axes))
    assert found == reason or reason in found


@pytest.mark.parametrize(("framework", "code"), [("server-dies", 137), ("worker-dies", 137), ("worker-faults", 1)])
def test_when_a_rank_dies_all_end(training, framework, code):
    options = (("staleness", "unbounded"),)
    out, log = training.train(3, code, strategy="async", framework=framework, options=options)
    assert not (out / "weights.npz").exists(), log
    errors = [json.loads(path.read_text()) for path in out.glob("rank-*.error.json")]
    causes = [(error["rank"], error["cause"]) for error in errors]
    assert causes == ([(1, "out-of-memory")] if framework == "worker-faults" else [])


def updates(**changes: Any) -> Updates:
    """Return what two workers of two steps say that went right, apart from the changes."""
    ranks = [
        {"gradients_applied": 4, "weights_crc32": 7},
        *({"gradients_sent": 2, "weights_crc32": 7} for _ in range(2)),
    ]
    series = {"staleness": [0, 1, 0, 1], "lead": [0, 0, 1, 0], "applied_worker": [1, 2, 1, 2]}
    ranks = changes.pop("ranks", ranks)
    series |= changes
    return Updates(
        layout=Layout(2, servers=1),
        step_time=np.ones(2),
        bound=1,
        ranks=ranks,
        series={name: np.array(values, float) for name, values in series.items()},
    )


def test_what_is_lost_or_too_stale_is_a_fault():
    assert updates().fault() is None
    sent = [
        {"gradients_applied": 3, "weights_crc32": 7},
        *({"gradients_sent": 2, "weights_crc32": 7} for _ in range(2)),
    ]
    assert "4 gradients were sent and 3 applied" in str(updates(ranks=sent).fault())
    silent = [sent[0] | {"gradients_applied": 4}, {"weights_crc32": 7}, sent[2]]
    assert "an unknown number of gradients" in str(updates(ranks=silent).fault())
    differing = [sent[0] | {"gradients_applied": 4}, sent[1], sent[2] | {"weights_crc32": 8}]
    assert "end with 2 different weights" in str(updates(ranks=differing).fault())
    assert "by rank are [0, 3, 1]: expected [0, 2, 2]" in str(updates(applied_worker=[1, 1, 1, 2]).fault())
    assert "reports [4, 4, 3] times" in str(updates(applied_worker=[1, 2, 2]).fault())
    assert "2 steps ahead" in str(updates(lead=[0, 2, 0, 0]).fault())
    assert "4 updates late" in str(updates(staleness=[0, 4, 0, 0]).fault())
