"""Horovod on both controllers, with real ranks: they learn what one rank learns on all data."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from checkouts import ROOT, environment_python
from transect.domain.cell import Cell
from transect.training.strategies import STRATEGIES

RANKS = 2
# Trains with mean and with sum on this rank's half of each batch, and by numpy on whole batches.
SCRIPT = """
import json, sys
import numpy as np
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import Conv2d, Flatten, Linear, MaxPool2d, ReLU, initial_weights
from transect.training.memory._limit import status_bytes
from transect.training.strategies import STRATEGIES
from transect.training.workloads import Parameters

framework, name = sys.argv[1:]
layers = (Conv2d(1, 5, 3, padding=1), ReLU(), MaxPool2d(2), Flatten(), Linear(80, 9), ReLU(), Linear(9, 3))
rule = Parameters(batch=8, epochs=1, learning_rate=0.05, momentum=0.9, weight_decay=1e-3,
                  quality_target=0.5)

def plan(seed):
    return ModelPlan(model=LayeredModel(layers, (1, 8, 8)), parameters=rule, weights=initial_weights(layers, seed),
                     batch=4, precision="fp64", device="cpu", threads=1,
                     memory_budget=1 << 30 if framework == "torch" else None)

strategy = STRATEGIES.get(name)
strategy.framework = framework
place = strategy.join()
generator = np.random.default_rng(0)
batches = [(generator.standard_normal((8, 1, 8, 8)), generator.integers(0, 3, 8)) for _ in range(4)]
rates = [0.05, 0.05, 0.1, 0.02]
facts = {"place": [place.rank, place.world_size, place.local_rank]}
for operation in ("mean", "sum"):
    strategy.operation = operation
    # Each rank begins with weights of its own: rank 0's must win.
    trainer = FRAMEWORKS.get(framework).trainer(plan(3 + place.rank))
    alone = NumpyTrainer(plan(3))
    strategy.start(trainer)
    strategy.barrier()
    begun = status_bytes("VmData")[0]
    parts = []
    part = slice(place.rank * 8 // place.world_size, (place.rank + 1) * 8 // place.world_size)
    for (x, y), rate in zip(batches, rates, strict=True):
        parts.append(strategy.step(trainer, *trainer.batch(x[part], y[part]), rate))
        alone.forward_backward(*alone.batch(x, y))
        alone.set_gradient(alone.gradient() * (place.world_size if operation == "sum" else 1))
        alone.update(rate)
    expected, found = alone.weights(), trainer.weights()
    facts[operation] = max(float(np.abs(found[key] - expected[key]).max()) for key in expected)
    facts[operation + " parts"] = parts
    facts.setdefault("grown", status_bytes("VmData")[0] - begun)
facts["libraries"] = strategy.libraries()
strategy.leave()
# One write: without a buffer, print's own newline may come after another rank's line.
sys.stdout.write(json.dumps(facts) + "\\n")
"""


def interpreter(framework, folder):
    """The interpreter of a framework's environment, which is compiled first where it is not in the cache."""
    return environment_python(STRATEGIES.get("horovod-gloo").environments[framework], folder)


@pytest.mark.env
@pytest.mark.timeout(7300)
# Each framework and each controller, which know nothing of each other; by --exhaustive all pairs.
@pytest.mark.parametrize(
    ("framework", "strategy"),
    [
        ("torch", "horovod-gloo"),
        ("torch", "horovod-mpi"),
        ("tensorflow", "horovod-gloo"),
        ("keras-2", "horovod-mpi"),
        ("mxnet", "horovod-gloo"),
        pytest.param("tensorflow", "horovod-mpi", marks=pytest.mark.exhaustive),
        pytest.param("keras-2", "horovod-gloo", marks=pytest.mark.exhaustive),
        pytest.param("mxnet", "horovod-mpi", marks=pytest.mark.exhaustive),
    ],
)
def test_ranks_learn_what_one_rank_learns(framework, strategy, tmp_path):
    python = interpreter(framework, tmp_path)
    launched = framework.removesuffix("-2")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "transect",
            "launch",
            "--framework",
            launched,
            "--strategy",
            strategy,
            "--ranks-per-node",
            str(RANKS),
            "--threads",
            "1",
            "--no-label",
            "--",
            python,
            "-c",
            SCRIPT,
            framework,
            strategy,
        ],
        env={k: v for k, v in os.environ.items() if not k.startswith("SLURM_")} | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    ranks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"place"')]
    assert sorted(one["place"] for one in ranks) == [[0, RANKS, 0], [1, RANKS, 1]]
    for one in ranks:
        assert one["mean"] < 1e-13
        assert one["sum"] < 1e-13
        for _, compute, communication, under_way, bubble in one["mean parts"]:
            assert compute > 0 and bubble == 0
            assert communication >= 0
            assert under_way != under_way or under_way >= communication
        # Horovod's own buffer of 128 MiB is there before a budget begins.
        assert framework != "torch" or one["grown"] < 1 << 26
        assert one["libraries"]["horovod controller"] == strategy.removeprefix("horovod-")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"reduce": "sum"}, None),
        ({"device": "cuda"}, None),
        ({"framework": "mxnet", "device": "cuda"}, "only torch uses GPUs"),
        ({"framework": "numpy"}, "not with numpy"),
    ],
)
def test_it_says_what_it_cannot_do(changes, reason):
    axes = {"framework": "torch", "strategy": "horovod-mpi", "batch": 8, **changes}
    cell = Cell.of(stage="train", workload="w", **axes)
    said = STRATEGIES.get("horovod-mpi").supports(cell)
    assert (said is None) if reason is None else (reason in said)
