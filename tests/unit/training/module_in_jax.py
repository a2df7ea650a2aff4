"""Trains modules of torch by torchax beside torch's own autograd in float64; prints how far apart they end, as JSON.

`python module_in_jax.py PRECISION`, in the environment `torchax`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transect.domain.errors import Unsupported
from transect.payloads.inspect_module import drawing, facts_of
from transect.training.datasets import Samples
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._module_files import make_module
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.module_model import ModuleModel
from transect.training.workloads import Parameters

FILE = Path(__file__).with_name("modules_of_users.py")
RULE = Parameters(
    batch=6, epochs=1, learning_rate=0.01, optimiser="adamw", weight_decay=0.01, epsilon=1e-3, quality_target=0.5
)


def samples_of(name: str) -> Samples:
    """Return what a module takes: images and classes, unless its name says otherwise."""
    generator = np.random.default_rng(1)
    x = (
        generator.integers(0, 9, (30, 5))
        if name == "Words"
        else generator.standard_normal((30, 2, 6, 6)).astype(np.float32)
    )
    if name == "Numbered":
        return Samples(x=x, y=generator.standard_normal((30, 1)), classes=(), source="here", file="none")
    return Samples(x=x, y=generator.integers(0, 3, 30), classes=("a", "b", "c"), source="here", file="none")


def plan_of(name: str, precision: str) -> tuple[ModelPlan, Samples]:
    samples = samples_of(name)
    rule = RULE if samples.classes else RULE.model_copy(update={"loss": "mse"})
    module = make_module(FILE, name, {}).train()
    facts = facts_of(module, samples, rule, name)
    facts |= drawing(lambda: make_module(FILE, name, {}).train(), samples, name)
    arrays = {n: t.detach().double().numpy() for n, t in module.state_dict().items()}
    model = ModuleModel(file=FILE, name=name, options={}, loss=rule.loss, facts=facts)
    weights = {weight.name: arrays[weight.name] for weight in model.weight_shapes()}
    plan = ModelPlan(
        model=model, parameters=rule, weights=weights, batch=6, precision=precision, device="cpu", threads=1
    )
    return plan, samples


def compare(name: str, precision: str) -> dict[str, float] | str:
    plan, samples = plan_of(name, precision)
    try:
        trainer = FRAMEWORKS.get("torchax").trainer(plan)
    except Unsupported as error:
        return str(error)
    expected = NumpyTrainer(plan_of(name, "fp64")[0])
    off = {"loss": 0.0, "moved": 0.0}
    for step in range(4):
        rows = slice(6 * step, 6 * step + 6)
        losses = [one.forward_backward(*one.batch(samples.x[rows], samples.y[rows])) for one in (expected, trainer)]
        for one in (expected, trainer):
            one.update(0.01)
        off["loss"] = max(off["loss"], abs(losses[0] - losses[1]))
    ends = [one.weights() for one in (expected, trainer)]
    assert list(ends[1]) == [weight.name for weight in plan.model.weight_shapes()]
    off["weights"] = max(float(np.abs(ends[0][n] - ends[1][n]).max()) for n in ends[1])
    off["moved"] = max(float(np.abs(plan.weights[n] - ends[1][n]).max()) for n in ends[1])
    off["predict"] = float(np.abs(expected.predict(samples.x[:7]) - trainer.predict(samples.x[:7])).max())
    return off


def main(precision: str, *names: str) -> None:
    torch.set_num_threads(1)
    found: dict[str, Any] = {name: compare(name, precision) for name in names}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
