"""Trains small models by one framework's trainer beside numpy's in float64, in parts too; prints how far apart they end, as JSON.

`python trainer_checks.py FRAMEWORK PRECISION`, in the framework's environment. Other programs take its models.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from transect.training.frameworks import FRAMEWORKS, FusedTrainer, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    LayerNorm,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sigmoid,
    initial_weights,
)
from transect.training.layout import Layout
from transect.training.parts import parts_of
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
    "mlp": ((2, 2), (Flatten(), Linear(4, 30), Sigmoid(), Linear(30, 20), ReLU(), Linear(20, 3))),
    "normalised": (
        (4,),
        (Linear(4, 7), Sigmoid(), LayerNorm(7), Linear(7, 6), LayerNorm(6, epsilon=1e-2), ReLU(), Linear(6, 3)),
    ),
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
    # Branches that keep their input, pool it, have layers inside; groups of one channel and of two, with a
    # stride and two outputs for each input.
    "branches": (
        (2, 8, 7),
        (
            Conv2d(2, 4, 3, 1),
            Branches(
                (
                    (),
                    (Conv2d(4, 4, 3, 1, bias=False, groups=4), BatchNorm2d(4), ReLU(), Conv2d(4, 3, 1)),
                    (Residual((Conv2d(4, 4, 3, 1, groups=2),)), Conv2d(4, 6, 3, 1, groups=2)),
                    (MaxPool2d(3, 1, 1),),
                )
            ),
            ReLU(),
            Conv2d(17, 34, 3, 1, 2, groups=17),
            Branches(((Conv2d(34, 4, 3, 0, 2, groups=2),),)),
            Flatten(),
            Linear(4, 3),
        ),
    ),
}
# The last batch is smaller: a sample variance depends on its size.
STEPS = ((0.05, 6), (0.05, 6), (0.1, 6), (0.02, 4))
# What is set counts, not what was computed.
SCALE = 1.25
CASES = [(model, "cross-entropy") for model in MODELS if model != "normalised"] + [("mlp", "mse")]
# Parts without weights begin the model, stand in its middle, and end in flattened images; and micro-batches.
CUTS = {"mlp": ((1, 2, 3), 4), "cnn": ((3, 4, 7), 4), "residual": ((4, 6), 2), "normalised": ((2, 4), 4)}


def plan(
    model: str,
    loss: str = "cross-entropy",
    precision: str = "fp64",
    momentum: float = 0.9,
    seed: int = 3,
    weight_decay: float = 1e-3,
    ema: float | None = None,
    accumulation: int = 1,
) -> ModelPlan:
    sample, layers = MODELS[model]
    rule = {"batch": 6, "epochs": 1, "learning_rate": 0.05, "quality_target": 0.5, "loss": loss}
    return ModelPlan(
        model=LayeredModel(layers, sample),
        parameters=Parameters(**rule, momentum=momentum, weight_decay=weight_decay, ema=ema, accumulation=accumulation),
        weights=initial_weights(layers, seed),
        batch=6,
        precision=precision,
        device="cpu",
        threads=1,
    )


def data(model: str, seed: int, size: int = 6) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.standard_normal((size, *MODELS[model][0])), generator.integers(0, 3, size)


def apart(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
    """Return the largest difference of arrays that must have the same names."""
    assert list(a) == list(b)
    return max(float(np.abs(a[name] - b[name]).max()) for name in a)


class MicroBatches(NumpyTrainer):
    """The whole model, whose batch norms see micro-batches."""

    count = 1

    def forward_backward(self, x: np.ndarray, y: np.ndarray) -> float:
        loss, total = 0.0, np.zeros_like(self.flat_gradient)
        for rows in Layout(1, 1, self.count).micro(len(y)):
            weight = len(y[rows]) / len(y)
            loss += weight * super().forward_backward(x[rows], y[rows])
            total += weight * self.flat_gradient
        self.set_gradient(total)
        return loss


class InParts:
    """A model's parts behind the face of a trainer; micro-batches pass through them as in 1F1B."""

    def __init__(self, framework: Any, model_plan: ModelPlan, cuts: tuple[int, ...], count: int) -> None:
        self.parts = [framework.part_trainer(model_plan, part) for part in parts_of(model_plan.model, cuts)]
        self.count = count

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Bring inputs to the first part, targets to the last."""
        return self.parts[0].batch(x, y)[0], self.parts[-1].batch(x, y)[1]

    def forward_backward(self, x: Any, y: Any) -> float:
        """Go forwards with two micro-batches, then back and forth by turns."""
        micro, loss = Layout(1, 1, self.count).micro(len(y)), 0.0
        for part in self.parts:
            part.begin_step()
        for i in range(len(micro) + 1):
            if i < len(micro):
                passed, weight = x[micro[i]], len(y[micro[i]]) / len(y)
                for part in self.parts[:-1]:
                    passed = part.forward(i, passed)
                loss += weight * self.parts[-1].loss(i, passed, y[micro[i]], weight)
            g = None
            for part in reversed(self.parts) if i else ():
                g = part.backward(i - 1, g)
                assert g is None or g.flags.c_contiguous
            assert g is None
        return loss

    def gradient(self) -> np.ndarray:
        self.flats = [part.gradient() for part in self.parts]
        return np.concatenate(self.flats)

    def set_gradient(self, flat: np.ndarray) -> None:
        """As a strategy does: each buffer changes in place and is handed back."""
        start = 0
        for part, buffer in zip(self.parts, self.flats, strict=True):
            buffer[...] = flat[start : start + buffer.size]
            start += buffer.size
            part.set_gradient(buffer)

    def update(self, rate: float) -> None:
        for part in self.parts:
            part.update(rate)

    def finish_step(self) -> None:
        for part in self.parts:
            part.finish_step()

    def predict(self, x: np.ndarray) -> np.ndarray:
        for part in self.parts:
            x = part.predict(x)
        return x

    def weights(self) -> dict[str, np.ndarray]:
        return {name: array for part in self.parts for name, array in part.weights().items()}

    def load(self, weights: dict[str, np.ndarray]) -> None:
        for part in self.parts:
            part.load(weights)


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


def fused(trainer: Any, x: Any, y: Any, rate: float, native: bool = False) -> tuple[float, np.ndarray]:
    """Do a step in one call, or of numpy its parts; `native`: x and y are of `batch` already."""
    batch = (x, y) if native else trainer.batch(x, y)
    if isinstance(trainer, FusedTrainer):
        loss = trainer.step(*batch, rate)
    else:
        loss = trainer.forward_backward(*batch)
        trainer.update(rate)
    trainer.finish_step()
    return loss, np.zeros(1)


def in_parts(trainer: Any, x: np.ndarray, y: np.ndarray, rate: float) -> tuple[float, np.ndarray]:
    return separate(trainer, x, y, rate)


def compare(framework: str, model: str, loss: str, precision: str, step: Callable[..., Any]) -> dict[str, float]:
    """Train both ways; return the largest difference of each kind."""
    # A momentum that is there, or none.
    rule = {} if loss == "cross-entropy" else {"momentum": 0.0, "weight_decay": 0.0}
    makes, given = FRAMEWORKS.get(framework), plan(model, loss, precision, **rule)
    expected = MicroBatches(plan(model, loss, **rule))
    if step is in_parts:
        cuts, expected.count = CUTS[model]
        trainer: Any = InParts(makes, given, cuts, expected.count)
    else:
        trainer = makes.trainer(given)
    off = {"loss": 0.0, "gradient": 0.0}
    traced: list[int] = []
    for seed, (rate, size) in enumerate(STEPS):
        # Of another size one way is enough: what is compiled is compiled anew.
        x, y = data(model, seed, size if step in (separate, in_parts) else STEPS[0][1])
        (loss_64, flat_64), (own_loss, flat) = (step(way, x, y, rate) for way in (expected, trainer))
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


def ticks() -> dict[str, int]:
    used = {}
    for folder in Path("/proc/self/task").iterdir():
        fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        used[folder.name] = int(fields[11]) + int(fields[12])
    return used


def busy_threads(framework: str) -> list[int]:
    """Return the CPU time of each thread over some steps, the most first."""
    layers = (Conv2d(3, 64, 3, padding=1), ReLU(), Conv2d(64, 64, 3, padding=1), Flatten(), Linear(65536, 10))
    given = replace(plan("mlp", precision="fp32"), model=LayeredModel(layers, (3, 32, 32)))
    trainer: Any = FRAMEWORKS.get(framework).trainer(replace(given, weights=initial_weights(layers, 0)))
    batch = trainer.batch(np.ones((16, 3, 32, 32), np.float32), np.zeros(16, np.int64))
    fused(trainer, *batch, 0.01, native=True)
    before = ticks()
    for _ in range(10):
        fused(trainer, *batch, 0.01, native=True)
    after = ticks()
    return sorted((after[t] - before.get(t, 0) for t in after), reverse=True)


def main(framework: str, precision: str) -> None:
    """Print all cases in float64, two of cross-entropy in others; or of `threads` how busy each was."""
    if precision == "threads":
        return print(json.dumps(busy_threads(framework)))
    steps = [separate]
    if framework.startswith(("keras", "tensorflow", "jax")):
        steps.append(fused)
    cases = CASES if precision == "fp64" else [CASES[0], CASES[2]]
    if precision == "fp64" and not FRAMEWORKS.get(framework).lacks:
        cases = [*cases, ("normalised", "mse")]
    # Parts and fused steps are made of what a whole step is: they show nothing more of branches.
    every = [(case, step) for case, step in product(cases, steps) if step is separate or case[0] != "branches"]
    # What is compiled is compiled anew for each part and size; of bfloat16 the smallest will do.
    parts = [case for case in cases if case[0] in CUTS]
    parts = parts[2:3] if framework == "keras-jax" else parts[:1] if precision == "amp-bf16" else parts
    every += [(case, in_parts) for case in parts]
    found = {
        f"{precision} {m} {loss} {step.__name__}": compare(framework, m, loss, precision, step)
        for (m, loss), step in every
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:3])
