"""Trains small models by one framework's trainer beside numpy's in float64; prints how far apart they end, as JSON.

`python trainer_checks.py FRAMEWORK PRECISION`, in the framework's environment. Other programs take its models.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from transect.training.frameworks import FRAMEWORKS, FusedTrainer, ModelPlan
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
from transect.training.workloads import Parameters


def block(before: int, after: int, stride: int) -> Residual:
    """Return a residual layer, of which one batch norm has a momentum of its own."""
    body = (
        Conv2d(before, after, 3, 1, stride, bias=False),
        BatchNorm2d(after),
        ReLU(),
        Conv2d(after, after, 3, 1),
        BatchNorm2d(after, momentum=0.3),
    )
    same = before == after and stride == 1
    cut = (Conv2d(before, after, 1, stride=stride, bias=False), BatchNorm2d(after))
    return Residual(body, () if same else cut)


MODELS: dict[str, tuple[tuple[int, ...], tuple[Layer, ...]]] = {
    "mlp": ((4,), (Linear(4, 30), Sigmoid(), Linear(30, 20), ReLU(), Linear(20, 3))),
    # The first pooling sees negative numbers and pads them.
    "cnn": (
        (2, 7, 8),
        (
            Conv2d(2, 5, 3, padding=1),
            MaxPool2d(3, 1, 1),
            ReLU(),
            Conv2d(5, 6, 2),
            ReLU(),
            MaxPool2d(2, 2),
            Flatten(),
            Linear(54, 3),
        ),
    ),
    # Stride 2 with padding 3 and an odd size; pooling whose windows reach into the padding.
    "residual": (
        (3, 17, 17),
        (
            Conv2d(3, 6, 7, 3, 2, bias=False),
            BatchNorm2d(6),
            ReLU(),
            MaxPool2d(3, 2, 1),
            block(6, 6, 1),
            ReLU(),
            block(6, 12, 2),
            ReLU(),
            GlobalAveragePool(),
            Linear(12, 3),
        ),
    ),
}
# The last batch is smaller: a sample variance depends on its size.
STEPS = ((0.05, 6), (0.05, 6), (0.1, 6), (0.02, 4))
# What is set counts, not what was computed.
SCALE = 1.25
CASES = [("mlp", "cross-entropy"), ("cnn", "cross-entropy"), ("residual", "cross-entropy"), ("mlp", "mse")]


def plan(
    model: str,
    loss: str = "cross-entropy",
    precision: str = "fp64",
    momentum: float = 0.9,
    threads: int = 1,
    seed: int = 3,
    weight_decay: float = 1e-3,
) -> ModelPlan:
    """Return the plan of a model with drawn weights."""
    sample, layers = MODELS[model]
    rule = {"batch": 6, "epochs": 1, "learning_rate": 0.05, "quality_target": 0.5, "loss": loss}
    return ModelPlan(
        model=LayeredModel(layers, sample),
        parameters=Parameters(**rule, momentum=momentum, weight_decay=weight_decay),
        weights=initial_weights(layers, seed),
        batch=6,
        precision=precision,
        device="cpu",
        threads=threads,
    )


def data(model: str, seed: int, size: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Draw samples and classes."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((size, *MODELS[model][0])), generator.integers(0, 3, size)


def apart(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
    """Return the largest difference of arrays that must have the same names."""
    assert list(a) == list(b)
    return max(float(np.abs(a[name] - b[name]).max()) for name in a)


def separate(trainer: Any, x: np.ndarray, y: np.ndarray, rate: float) -> tuple[float, np.ndarray]:
    """Do a step in parts, as a strategy does: the buffer changes in place and is handed back."""
    loss = trainer.forward_backward(*trainer.batch(x, y))
    flat = trainer.gradient()
    # Layouts differ from framework to framework, and so do the places of numbers.
    found = np.sort(flat)
    flat *= SCALE
    trainer.set_gradient(flat)
    trainer.update(rate)
    trainer.finish_step()
    return loss, found


def fused(trainer: Any, x: np.ndarray, y: np.ndarray, rate: float) -> tuple[float, np.ndarray]:
    """Do a step in one call, or of numpy its parts."""
    if isinstance(trainer, FusedTrainer):
        loss = trainer.step(*trainer.batch(x, y), rate)
    else:
        loss = trainer.forward_backward(*trainer.batch(x, y))
        trainer.update(rate)
    trainer.finish_step()
    return loss, np.zeros(1)


def keras_own(trainer: Any, x: np.ndarray, y: np.ndarray, rate: float) -> tuple[float, np.ndarray]:
    """Do a step by Keras' own train_on_batch, or of numpy its parts."""
    if isinstance(trainer, NumpyTrainer):
        return fused(trainer, x, y, rate)
    if getattr(trainer.model, "optimizer", None) is None:
        trainer.model.compile(trainer.optimiser, trainer.loss)
    trainer.optimiser.set_rate(rate)
    loss = float(trainer.model.train_on_batch(*trainer.batch(x, y)))
    if hasattr(trainer, "fetch"):
        trainer.fetch()
    return loss, np.zeros(1)


def compare(framework: str, model: str, loss: str, precision: str, step: Callable[..., Any]) -> dict[str, float]:
    """Train both ways; return the largest difference of each kind."""
    # A momentum that is there, or none.
    rule = {} if loss == "cross-entropy" else {"momentum": 0.0, "weight_decay": 0.0}
    expected: Any = NumpyTrainer(plan(model, loss, **rule))
    trainer: Any = FRAMEWORKS.get(framework).trainer(plan(model, loss, precision, **rule))
    off = {"loss": 0.0, "gradient": 0.0}
    traced: list[int] = []
    for seed, (rate, size) in enumerate(STEPS):
        # Of another size one way is enough: what is compiled is compiled anew.
        x, y = data(model, seed, size if step is separate else STEPS[0][1])
        (loss_64, flat_64), (own_loss, flat) = (step(one, x, y, rate) for one in (expected, trainer))
        off["loss"] = max(off["loss"], abs(loss_64 - own_loss))
        off["gradient"] = max(off["gradient"], float(np.abs(flat_64 - flat).max()))
        if hasattr(trainer, "traces"):
            traced.append(trainer.traces())
    # TensorFlow traces in the first step, and in none that is alike.
    off["traces"] = float(traced[2] - traced[0]) if traced else 0.0
    off["weights"] = apart(expected.weights(), trainer.weights())
    assert apart(plan(model).weights, trainer.weights()) > 1e-3
    # More samples than in a batch, and one: other shapes.
    for size in (7, 1):
        x, _ = data(model, 9, size)
        off[f"predict {size}"] = float(np.abs(expected.predict(x) - trainer.predict(x)).max())
    trainer.load(plan(model).weights)
    off["load"] = apart(plan(model).weights, trainer.weights())
    return off


def main(framework: str, precision: str) -> None:
    """Print all cases in float64, two of cross-entropy in others."""
    steps = [separate]
    if framework.startswith(("keras", "tensorflow")):
        steps.append(fused)
    if framework.startswith("keras"):
        steps.append(keras_own)
    cases = CASES if precision == "fp64" else [CASES[0], CASES[2]]
    every = product(cases, steps)
    found = {
        f"{precision} {m} {loss} {step.__name__}": compare(framework, m, loss, precision, step)
        for (m, loss), step in every
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:3])
