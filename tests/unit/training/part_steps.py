"""Trains models in parts and whole, by one framework; prints how far they end up apart, as JSON.

`python part_steps.py FRAMEWORK`, in the framework's environment. What is whole is numpy in float64.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import (
    BatchNorm2d,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sigmoid,
    initial_weights,
)
from transect.training.layout import Layout
from transect.training.part_chain import PartChain
from transect.training.parts import parts_of
from transect.training.workloads import Parameters

BLOCK = (Conv2d(4, 6, 3, 1, 2, bias=False), BatchNorm2d(6), ReLU(), Conv2d(6, 6, 3, 1, bias=False), BatchNorm2d(6))
SHORTCUT = (Conv2d(4, 6, 1, stride=2, bias=False), BatchNorm2d(6))
MLP: tuple[Layer, ...] = (Flatten(), Linear(12, 9), Sigmoid(), Linear(9, 7), ReLU(), Linear(7, 3))
NET: tuple[Layer, ...] = (
    Conv2d(3, 4, 3, 1),
    BatchNorm2d(4),
    ReLU(),
    MaxPool2d(2),
    Residual(BLOCK, SHORTCUT),
    Residual((Conv2d(6, 6, 3, 1), ReLU())),
    GlobalAveragePool(),
    Linear(6, 3),
)
# Sample, layers, and cuts: one part, parts without weights at each place, a part for each layer.
MODELS: dict[str, tuple[tuple[int, ...], tuple[Layer, ...], list[tuple[int, ...]]]] = {
    "mlp": ((3, 2, 2), MLP, [(), (1, 2, 3), (2, 5), (1, 2, 3, 4, 5)]),
    "net": ((3, 8, 8), NET, [(4,), (2, 3, 5), (1, 2, 3, 4, 5, 6, 7)]),
}
RULES: list[tuple[str, dict[str, Any]]] = [("cross-entropy", {"momentum": 0.9, "weight_decay": 1e-3}), ("mse", {})]
RATES, BATCH = (0.05, 0.1, 0.02), 7


def make_plan(name: str, precision: str, loss: str, rule: dict[str, Any]) -> ModelPlan:
    """Return the plan of a model with drawn weights."""
    sample, layers, _ = MODELS[name]
    parameters = Parameters(batch=BATCH, epochs=1, learning_rate=0.05, quality_target=0.5, loss=loss, **rule)  # type: ignore[arg-type]
    return ModelPlan(
        model=LayeredModel(layers, sample),
        parameters=parameters,
        weights=initial_weights(layers, 3),
        batch=BATCH,
        precision=precision,
        device="cpu",
        threads=1,
    )


def whole_step(trainer: NumpyTrainer, x: np.ndarray, y: np.ndarray, micro: list[slice]) -> float:
    """Leave the gradient of the batch's mean loss in the trainer; return that loss."""
    loss, total = 0.0, np.zeros_like(trainer.flat_gradient)
    for one in micro:
        weight = len(y[one]) / len(y)
        loss += weight * trainer.forward_backward(x[one], y[one])
        total += weight * trainer.flat_gradient
    trainer.set_gradient(total)
    return loss


def part_step(parts: list[Any], x: np.ndarray, y: np.ndarray, micro: list[slice]) -> float:
    """Do the passes of all parts: forwards for two micro-batches, then alternately, as 1F1B does."""
    batches = [part.batch(x, y) for part in parts]
    loss = 0.0

    def forward(i: int) -> None:
        nonlocal loss
        passed: Any = batches[0][0][micro[i]]
        for part in parts[:-1]:
            passed = part.forward(i, passed)
        weight = len(y[micro[i]]) / len(y)
        loss += weight * parts[-1].loss(i, passed, batches[-1][1][micro[i]], weight)

    def backward(i: int) -> None:
        g = None
        for part in reversed(parts):
            g = part.backward(i, g)
            assert g is None or g.flags.c_contiguous
        assert g is None

    for part in parts:
        part.begin_step()
    for i in range(len(micro) + 1):
        if i < len(micro):
            forward(i)
        if i:
            backward(i - 1)
    return loss


def apart(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
    """Return the largest difference of arrays that must have the same names and shapes."""
    assert list(a) == list(b), (list(a), list(b))
    assert all(a[name].shape == b[name].shape for name in a)
    return max(float(np.abs(a[name] - b[name]).max()) for name in a)


def compare(
    framework: str,
    name: str,
    precision: str,
    loss: str,
    rule: dict[str, Any],
    cuts: tuple[int, ...],
    micro_batches: int,
    passes: Callable[..., float] = part_step,
) -> dict[str, float]:
    """Train three steps both ways, then two more from a state of the whole one."""
    plan = make_plan(name, precision, loss, rule)
    whole = NumpyTrainer(make_plan(name, "fp64", loss, rule))
    makes: Any = FRAMEWORKS.get(framework)
    parts = [makes.part_trainer(plan, part) for part in parts_of(plan.model, cuts)]
    if len(parts) > 3:
        # Some of them chained to one.
        parts = [PartChain(parts[:1]), PartChain(parts[1:3]), *parts[3:]]
    generator = np.random.default_rng(0)
    micro = Layout(1, len(parts), micro_batches).micro(BATCH)
    off = dict.fromkeys(("loss", "gradient", "weights", "predict", "resumed"), 0.0)

    def step(rate: float) -> None:
        x, y = generator.standard_normal((BATCH, *MODELS[name][0])), generator.integers(0, 3, BATCH)
        expected, got = whole_step(whole, x, y, micro), passes(parts, x, y, micro)
        off["loss"] = max(off["loss"], abs(expected - got))
        flats = [part.gradient() for part in parts]
        # Layouts differ from framework to framework, and so do the places of numbers.
        differences = np.sort(np.concatenate(flats)) - np.sort(whole.gradient())
        off["gradient"] = max(off["gradient"], float(np.abs(differences).max()))
        for part, own in zip(parts, flats, strict=True):
            # As a strategy does: the buffer changes in place and is handed back.
            own *= 2
            part.set_gradient(own)
            part.update(rate)
            part.finish_step()
        whole.flat_gradient *= 2
        whole.update(rate)

    def weights() -> dict[str, np.ndarray]:
        return {key: array for part in parts for key, array in part.weights().items()}

    for rate in RATES:
        step(rate)
    off["weights"] = apart(whole.weights(), weights())
    x = passed = generator.standard_normal((5, *MODELS[name][0]))
    for part in parts:
        passed = part.predict(passed)
    off["predict"] = float(np.abs(passed - whole.predict(x)).max())
    state = whole.state()
    step(0.1)
    whole.resume(state)
    for part in parts:
        part.resume(state)
    step(0.05)
    off["resumed"] = apart(whole.weights(), weights())
    for part in parts:
        part.load(plan.weights)
    assert apart(plan.weights, weights()) < 1e-6
    return off


def main(framework: str) -> None:
    """Print the worst of all cases by precision."""
    found: dict[str, dict[str, float]] = {}
    for precision in ("fp64", "fp32"):
        worst: dict[str, float] = {}
        for name, (_, _, several) in MODELS.items():
            for number, cuts in enumerate(several):
                loss, rule = RULES[number % 2]
                for micro_batches in (1, 2, 3, 7):
                    off = compare(framework, name, precision, loss, rule, cuts, micro_batches)
                    worst = {key: max(worst.get(key, 0.0), value) for key, value in off.items()}
        found[precision] = worst
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
