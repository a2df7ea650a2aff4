"""TensorFlow's layouts and two real workers, against numpy in float64; one rank's steps: test_trainers.py."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import numpy as np
import pytest

from transect.domain.cell import Cell
from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks._channels_last import samples_last, to_native, to_neutral
from transect.training.layers import BatchNorm2d, Conv2d, Flatten, Linear, MaxPool2d, ReLU, Residual, initial_weights
from transect.training.strategies import STRATEGIES
from warm import ended, warm

MODELS = f"""
import json, os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
from transect.training.frameworks import FRAMEWORKS
from trainer_checks import NumpyTrainer, apart, data, plan
"""

WORKER = (
    MODELS
    + """
from transect.training.strategies import STRATEGIES

strategy = STRATEGIES.get("multiworker-ring")
place = strategy.join()
found = {"rank": place.rank, "size": place.world_size}
for name, operation in (("cnn", "mean"), ("cnn", "sum"), ("residual", "mean")):
    strategy.operation = operation
    # Rank 1 draws other weights, and is given those of rank 0.
    trainer = FRAMEWORKS.get("tensorflow").trainer(plan(name, seed=3 + place.rank))
    strategy.start(trainer)
    ranks = [NumpyTrainer(plan(name)) for _ in range(2)]
    alone = NumpyTrainer(plan(name))
    off = {"loss": 0.0, "parts": True}
    for number, rate in enumerate((0.05, 0.05, 0.1, 0.02, 0.02)):
        x, y = data(name, number)
        losses = []
        for number, one in enumerate(ranks):
            part = slice(3 * number, 3 * number + 3)
            losses.append(one.forward_backward(*one.batch(x[part], y[part])))
        total = sum(one.gradient() for one in ranks) / (2 if operation == "mean" else 1)
        for one in ranks:
            one.set_gradient(total)
            one.update(rate)
        alone.forward_backward(*alone.batch(x, y))
        alone.update(rate)
        part = slice(3 * place.rank, 3 * place.rank + 3)
        parts = strategy.step(trainer, *trainer.batch(x[part], y[part]), rate)
        off["loss"] = max(off["loss"], abs(parts.loss - losses[place.rank]))
        off["parts"] &= parts.compute > 0 and 0 < parts.communication == parts.under_way
    off["weights"] = apart(ranks[place.rank].weights(), trainer.weights())
    off["alone"] = apart(alone.weights(), trainer.weights())
    if place.rank == 0:
        off["predict"] = float(np.abs(ranks[0].predict(x) - trainer.predict(x)).max())
    strategy.barrier()
    found[f"{name} {operation}"] = off
    found["traces"] = strategy._step.experimental_get_tracing_count()
strategy.leave()
print(json.dumps(found))
"""
)


def test_channels_last_is_undone():
    block = Residual((Conv2d(5, 5, 3, 1, bias=False), BatchNorm2d(5)))
    layers = (Conv2d(1, 5, 3, padding=1), MaxPool2d(2), block, Flatten(), ReLU(), Linear(80, 7))
    weights = initial_weights(layers, 1)
    native = to_native(weights, layers, (1, 8, 8))
    back = to_neutral(native, layers, (1, 8, 8))
    assert native["0.weight"].shape == (3, 3, 1, 5) and native["5.weight"].shape == (80, 7)
    assert list(back) == list(weights)
    for name, array in weights.items():
        assert np.array_equal(array, back[name]) and back[name].flags.c_contiguous
    x = np.random.default_rng(0).standard_normal((2, 5, 4, 4))
    expected = x.reshape(2, -1) @ weights["5.weight"].T
    assert samples_last(x).reshape(2, -1) @ native["5.weight"] == pytest.approx(expected, abs=1e-14)


def test_channels_last_refuses_what_it_cannot_order():
    with pytest.raises(ValueError, match=r"ends in the flattened features of \(3, 2, 2\)"):
        to_native({}, (Flatten(),), (3, 2, 2))
    with pytest.raises(ValueError, match="layer 1: its body and its shortcut"):
        to_native({}, (Flatten(), Residual((Linear(12, 12),))), (3, 2, 2))
    with pytest.raises(ValueError, match=r"'0.weight' has shape \(3, 2\), the model takes"):
        to_native({"0.weight": np.zeros((3, 2))}, (Linear(3, 2),), (3,))


def test_two_workers_are_one_rank(tensorflow_python):
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.bind(("127.0.0.1", 0))
        workers = [f"127.0.0.1:{one.getsockname()[1]}" for one in (first, second)]
    ranks = []
    for index in range(2):
        task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        variables = {"TF_CONFIG": json.dumps(task)}
        ranks.append(warm(tensorflow_python).start("-c", WORKER, env=variables))
    for index, done in enumerate(ended(ranks)):
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (found["rank"], found["size"], found["traces"]) == (index, 2, 1)
        for name in ("cnn mean", "cnn sum", "residual mean"):
            off = found[name]
            assert off["parts"] and off["loss"] < 1e-12 and off["weights"] < 1e-12, name
            assert off.get("predict", 0.0) < 1e-12, name
        assert found["cnn mean"]["alone"] < 1e-12 < found["cnn sum"]["alone"]


@pytest.mark.parametrize(
    ("strategy", "axes", "reason"),
    [
        ("multiworker-ring", {}, None),
        ("multiworker-ring", {"reduce": "sum", "precision": "fp64"}, None),
        ("multiworker-nccl", {"device": "cuda"}, None),
        ("multiworker-nccl", {}, "works on cuda"),
        ("multiworker-ring", {"device": "cuda"}, "works on cpu"),
        ("multiworker-ring", {"framework": "keras-tensorflow"}, "Keras 3"),
        ("multiworker-ring", {"framework": "torch"}, "not of torch"),
    ],
)
def test_multiworker_says_where_it_runs(strategy, axes, reason):
    axes = {"framework": "tensorflow", "strategy": strategy} | axes
    cell = Cell.of(stage="train", workload="digits-cnn", batch=64, **axes)
    found = STRATEGIES.get(strategy).supports(cell)
    assert found is None if reason is None else reason in found


def test_tensorflow_says_what_it_computes():
    framework = FRAMEWORKS.get("tensorflow")
    axes = {"framework": "tensorflow", "strategy": "single"}
    cell = Cell.of(stage="train", workload="digits-cnn", batch=64, **axes)
    assert framework.supports(cell) is None
    assert "not in fp16" in framework.supports(cell.model_copy(update={"precision": "fp16"}))
    assert "not on rocm" in framework.supports(cell.model_copy(update={"device": "rocm"}))
