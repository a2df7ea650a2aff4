"""Keras on TensorFlow, torch and JAX, and in version 2: its threads, its weights, two ranks; its steps: test_trainers.py."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from checkouts import environment_python
from transect.domain.cell import Cell
from transect.training.frameworks import FRAMEWORKS
from transect.training.strategies import STRATEGIES
from warm import ended, warm

ENVIRONMENTS = {
    "keras-tensorflow": "tensorflow",
    "keras-torch": "torch",
    "keras-jax": "keras-jax",
    "keras-2": "horovod-tensorflow",
}

PLANS = f"""
import json, os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
from transect.training.frameworks import FRAMEWORKS
from transect.training.layers import Conv2d, Flatten, Linear, ReLU, initial_weights
from trainer_checks import MODELS, LayeredModel, NumpyTrainer, plan
"""

LOAD = """
framework = sys.argv[1]
trainers = [NumpyTrainer(plan("residual")), FRAMEWORKS.get(framework).trainer(plan("residual", momentum=0.0))]
generator = np.random.default_rng(1)
given = {k: v + generator.uniform(0.1, 0.5, v.shape) for k, v in plan("residual").weights.items()}
x = generator.standard_normal((3, *MODELS["residual"][0]))
for trainer in trainers:
    trainer.load(given)
back = trainers[1].weights()
assert all(np.array_equal(back[name], given[name]) for name in given)
back["0.weight"][...] = 0
expected, found = (trainer.predict(x) for trainer in trainers)
assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max(), (found, expected)
trainers[1].forward_backward(*trainers[1].batch(x, np.array([0, 1, 2])))
flat = trainers[1].gradient()
flat[...] = 1.0
trainers[1].set_gradient(flat)
flat[...] = 7.0
before = trainers[1].weights()
trainers[1].update(0.5)
moved = {k: v - before[k] for k, v in trainers[1].weights().items()}
# w - 0.5 (1 + 1e-3 w): no momentum, and the buffer was copied.
for name, change in moved.items():
    if name.rpartition(".")[2] not in ("running_mean", "running_var"):
        assert np.abs(change + 0.5 * (1 + 1e-3 * before[name])).max() < 1e-12, name
print(json.dumps(FRAMEWORKS.get(framework).libraries()))
"""

THREADS = """
framework, threads = sys.argv[1], int(sys.argv[2])
from dataclasses import replace
layers = (Conv2d(3, 64, 3, padding=1), ReLU(), Conv2d(64, 64, 3, padding=1), Flatten(), Linear(65536, 10))
base = plan("mlp", precision="fp32", threads=threads)
trainer = FRAMEWORKS.get(framework).trainer(replace(
    base, model=LayeredModel(layers, (3, 32, 32)), weights=initial_weights(layers, 0)))
x, y = trainer.batch(np.ones((16, 3, 32, 32)), np.zeros(16, np.int64))

def ticks():
    used = {}
    for thread in os.listdir("/proc/self/task"):
        fields = open(f"/proc/self/task/{thread}/stat").read().rsplit(")", 1)[1].split()
        used[thread] = int(fields[11]) + int(fields[12])
    return used

trainer.step(x, y, 0.01)
before = ticks()
for _ in range(10):
    trainer.step(x, y, 0.01)
after = ticks()
print(json.dumps(sorted((after[t] - before.get(t, 0) for t in after), reverse=True)))
"""

RANKS = """
from dataclasses import replace
from transect.training.strategies import STRATEGIES
strategy = STRATEGIES.get(sys.argv[2])
strategy.operation = sys.argv[3]
place = strategy.join()
half = replace(plan(sys.argv[4]), batch=3)
# Only rank 0 has the right weights.
mine = half if place.rank == 0 else replace(half, weights={k: v + 1 for k, v in half.weights.items()})
trainer = FRAMEWORKS.get(sys.argv[1]).trainer(mine)
strategy.start(trainer)
pair = [NumpyTrainer(half), NumpyTrainer(half)]
generator = np.random.default_rng(0)
worst = 0.0
for rate in (0.05, 0.1, 0.02):
    parts = [(generator.standard_normal((3, *half.sample)), generator.integers(0, 3, 3)) for _ in pair]
    losses = [one.forward_backward(*part) for one, part in zip(pair, parts)]
    total = pair[0].gradient() + pair[1].gradient()
    for one in pair:
        one.set_gradient(total / 2 if strategy.operation == "mean" else total)
        one.update(rate)
    done = strategy.step(trainer, *trainer.batch(*parts[place.rank]), rate)
    assert done.compute > 0 and done.communication >= 0
    worst = max(worst, abs(done.loss - losses[place.rank]))
expected, x = pair[place.rank].weights(), parts[0][0]
worst = max(worst, *(np.abs(expected[k] - v).max() for k, v in trainer.weights().items()))
worst = max(worst, np.abs(strategy.predict(trainer, x) - pair[place.rank].predict(x)).max())
strategy.barrier()
strategy.leave()
print(json.dumps([place.rank, place.world_size, float(worst)]))
"""


@pytest.fixture(scope="session")
def keras_python(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """A function that returns the interpreter of a framework's environment."""
    return lambda framework: environment_python(ENVIRONMENTS[framework], tmp_path_factory.mktemp("environment"))


def run(python: str, script: str, *arguments: str):
    done = warm(python).run("-c", PLANS + script, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("framework", ENVIRONMENTS)
def test_weights_and_gradients_go_in_and_out_unchanged(keras_python, framework):
    versions = run(keras_python(framework), LOAD, framework)
    assert versions["keras"].split(".")[0] == ("2" if framework == "keras-2" else "3")


@pytest.mark.parametrize("framework", ENVIRONMENTS)
def test_one_thread_computes_when_a_cell_has_one(keras_python, framework):
    busy = run(keras_python(framework), THREADS, framework, "1")
    assert busy[0] >= 10
    # Others only hand over work.
    assert sum(busy[1:]) <= 0.2 * busy[0]


@pytest.mark.parametrize(
    "case",
    [
        ("keras-torch", "ddp-gloo", "mean", "residual"),
        ("keras-jax", "jax-data-parallel", "mean", "residual"),
        ("keras-jax", "jax-data-parallel", "sum", "mlp"),
    ],
    ids=" ".join,
)
def test_two_ranks_do_what_two_halves_of_a_batch_say(keras_python, case):
    python = keras_python(case[0])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    ranks = [
        warm(python).start("-c", PLANS + RANKS, *case, env=common | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(2)
    ]
    for rank, done in enumerate(ended(ranks)):
        assert done.returncode == 0, done.stderr
        number, size, worst = json.loads(done.stdout.splitlines()[-1])
        assert (number, size) == (rank, 2)
        assert worst < 1e-12


def test_jax_data_parallel_refuses_what_it_cannot_do():
    cell = Cell.of(stage="train", workload="iris-mlp", framework="keras-jax", strategy="jax-data-parallel", batch=4)
    jax = STRATEGIES.get("jax-data-parallel")
    assert jax.supports(cell) is None
    assert "keras-torch" in jax.supports(cell.model_copy(update={"framework": "keras-torch"}))
    assert "CPU" in jax.supports(cell.model_copy(update={"device": "cuda"}))


@pytest.mark.parametrize("framework", ENVIRONMENTS)
def test_what_does_not_run_is_refused_with_a_reason(framework):
    cell = Cell.of(stage="train", framework=framework, strategy="single", workload="iris-mlp", batch=4)
    keras = FRAMEWORKS.get(framework)
    assert keras.environment == ENVIRONMENTS[framework]
    assert keras.supports(cell) is None
    assert keras.supports(cell.model_copy(update={"precision": "fp64"})) is None
    assert "cuda" in keras.supports(cell.model_copy(update={"device": "cuda"}))
    assert "amp-bf16" in keras.supports(cell.model_copy(update={"precision": "amp-bf16"}))
