"""TensorFlow against numpy in float64: layouts, gradients, updates, traces, and two real workers."""

from __future__ import annotations

import json
import socket

import numpy as np
import pytest

from checkouts import ROOT
from transect.domain.cell import Cell
from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks._channels_last import samples_last, to_native, to_neutral
from transect.training.layers import BatchNorm2d, Conv2d, Flatten, Linear, MaxPool2d, ReLU, Residual, initial_weights
from transect.training.strategies import STRATEGIES
from warm import ended, warm

MODELS = """
import json, os, sys
import numpy as np
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import (
    BatchNorm2d, Conv2d, Flatten, GlobalAveragePool, Linear, MaxPool2d, ReLU, Residual, Sigmoid,
    initial_weights, is_statistic,
)
from transect.training.workloads import Parameters

def block(before, after, stride):
    body = (Conv2d(before, after, 3, 1, stride, bias=False), BatchNorm2d(after), ReLU(),
            Conv2d(after, after, 3, 1, bias=False), BatchNorm2d(after))
    same = before == after and stride == 1
    return Residual(body, () if same else (
        Conv2d(before, after, 1, stride=stride, bias=False), BatchNorm2d(after)))

MODELS = {
    "mlp": ((4,), (Linear(4, 30), Sigmoid(), Linear(30, 20), ReLU(), Linear(20, 3))),
    "cnn": ((2, 8, 8), (Conv2d(2, 5, 3, padding=1), ReLU(), MaxPool2d(2),
                        Conv2d(5, 6, 3, padding=1), ReLU(), MaxPool2d(2), Flatten(),
                        Linear(24, 3))),
    # Stride 2 with padding 3 and an odd size; pooling whose windows reach into the padding.
    "resnet": ((3, 17, 17), (Conv2d(3, 6, 7, 3, 2, bias=False), BatchNorm2d(6),
                             MaxPool2d(3, 2, 1), block(6, 6, 1), ReLU(), block(6, 8, 2), ReLU(),
                             GlobalAveragePool(), Linear(8, 3))),
}
RATES = [0.05, 0.05, 0.1, 0.02, 0.02]

def plan(name, precision="fp64", loss="cross-entropy", seed=3, **changed):
    sample, layers = MODELS[name]
    parameters = Parameters(batch=6, epochs=1, learning_rate=0.05, loss=loss, quality_target=0.5,
                            **{"momentum": 0.9, "weight_decay": 1e-3} | changed)
    return ModelPlan(model=LayeredModel(layers, sample), parameters=parameters,
                     weights=initial_weights(layers, seed), batch=6, precision=precision,
                     device="cpu", threads=1)

def batches(name):
    generator = np.random.default_rng(0)
    return [(generator.standard_normal((6, *MODELS[name][0])), generator.integers(0, 3, 6))
            for _ in RATES]

def apart(a, b):
    assert list(a) == list(b)
    return max(float(np.abs(a[name] - b[name]).max()) for name in a)
"""

EQUALITY = (
    MODELS
    + """
framework, found = FRAMEWORKS.get("tensorflow"), {}
for name in MODELS:
    data = batches(name)
    for precision, loss, changed in (
        ("fp64", "cross-entropy", {}), ("fp64", "mse", {"momentum": 0.0, "weight_decay": 0.0}),
        ("fp32", "cross-entropy", {}), ("amp-bf16", "cross-entropy", {}),
    ):
        expected = NumpyTrainer(plan(name, loss=loss, **changed))
        separate, fused = (framework.trainer(plan(name, precision, loss, **changed))
                           for _ in range(2))
        off = dict.fromkeys(("loss", "weights", "gradient", "step", "predict"), 0.0)
        for number, ((x, y), rate) in enumerate(zip(data, RATES)):
            losses = [one.forward_backward(*one.batch(x, y)) for one in (expected, separate)]
            given = [np.sort(one.gradient()) for one in (expected, separate)]
            off["gradient"] = max(off["gradient"], float(np.abs(given[0] - given[1]).max()))
            # As a strategy does: the buffer changes in place and is handed back.
            flat = separate.gradient()
            flat *= 2
            flat /= 2
            separate.set_gradient(flat)
            for one in (expected, separate):
                one.update(rate)
                one.finish_step()
            losses.append(fused.step(*fused.batch(x, y), rate))
            off["loss"] = max(off["loss"], *(abs(one - losses[0]) for one in losses[1:]))
            if number == 1:
                for one in (separate, fused):
                    one.predict(x)
                traced = [one.traces() for one in (separate, fused)]
        off["weights"] = apart(expected.weights(), separate.weights())
        off["step"] = apart(separate.weights(), fused.weights())
        off["predict"] = max(float(np.abs(expected.predict(x[:n]) - separate.predict(x[:n])).max())
                             for n in (6, 1))
        off["traces"] = [traced, [one.traces() for one in (separate, fused)]]
        first = plan(name).weights
        separate.load(first)
        off["load"] = apart(first, separate.weights())
        found[f"{name} {precision} {loss}"] = off
print(json.dumps(found))
"""
)

WORKER = (
    MODELS
    + """
from transect.training.strategies import STRATEGIES

strategy = STRATEGIES.get("multiworker-ring")
place = strategy.join()
found = {"rank": place.rank, "size": place.world_size}
for name, operation in (("cnn", "mean"), ("cnn", "sum"), ("resnet", "mean")):
    strategy.operation = operation
    # Rank 1 draws other weights, and is given those of rank 0.
    trainer = FRAMEWORKS.get("tensorflow").trainer(plan(name, seed=3 + place.rank))
    strategy.start(trainer)
    ranks = [NumpyTrainer(plan(name)) for _ in range(2)]
    alone = NumpyTrainer(plan(name))
    off = {"loss": 0.0, "parts": True}
    for (x, y), rate in zip(batches(name), RATES):
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

VARIABLES = {"PYTHONPATH": str(ROOT / "src"), "TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": "1"}


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


def test_tensorflow_computes_what_numpy_computes(tensorflow_python):
    run = warm(tensorflow_python).run("-c", EQUALITY)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert len(found) == 12
    for name, off in found.items():
        # bfloat16 has 8 bits, which the divisions of a batch norm of six samples amplify.
        rough = 0.15 if name.startswith("resnet") else 0.02
        limit = {"fp64": 1e-12, "fp32": 2e-6, "amp-bf16": rough}[name.split()[1]]
        for part in ("loss", "weights", "gradient", "predict", "step"):
            assert off[part] < limit, (name, part)
        assert off["load"] < 1e-7, name
        # Forward and backward, update and prediction; the fused step and prediction.
        assert off["traces"] == [[3, 2], [3, 2]], name


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
        for name in ("cnn mean", "cnn sum", "resnet mean"):
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
