"""Steps trained by ONNX Runtime and by torch.optim: runs in the environment `torch`, prints JSON.

    python portable_step_cases.py FOLDER CASE...

For each case the step is exported to FOLDER/CASE, and 100 updates are done twice. Printed are the
largest relative differences of losses and of the state at the end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from portable_step_runner import Runner, difference
from torch import nn

from transect import portable_step
from transect.portable_step.lamb import Lamb
from transect.portable_step.randomness import reference_masks

UPDATES, BATCH = 100, 8
CASES: dict[str, Callable[[], Case]] = {}


@dataclass(kw_only=True)
class Case:
    """What is exported, how torch does the same, and the options of the export."""

    module: nn.Module
    optimiser: torch.optim.Optimizer
    batch: Callable[[np.random.Generator], tuple[torch.Tensor, ...]]
    loss: Callable[[Any, torch.Tensor], torch.Tensor] = nn.functional.cross_entropy
    options: dict[str, Any] = field(default_factory=dict)
    micro_batches: int = 1
    seed: int = 0
    before: int = 0
    # Hyper-parameters from step 50 on, and what they are in torch.
    later: dict[str, float] = field(default_factory=dict)
    later_torch: dict[str, Any] = field(default_factory=dict)


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def mlp(*more: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 30), nn.Tanh(), *more, nn.Linear(30, 3)).double()


def rows(generator: np.random.Generator) -> tuple[torch.Tensor, ...]:
    y = generator.integers(0, 3, BATCH)
    x = generator.normal(size=(BATCH, 4)) + np.eye(3, 4)[y]
    return torch.from_numpy(x), torch.from_numpy(y)


def simple(optimiser: Callable[..., Any], module: nn.Module | None = None, **more: Any) -> Case:
    module = module or mlp()
    return Case(module=module, optimiser=optimiser(module.parameters()), batch=rows, **more)


def sgd_with(**options: Any) -> Callable[..., torch.optim.Optimizer]:
    return lambda parameters: torch.optim.SGD(parameters, **options)


MOMENTUM = sgd_with(lr=0.05, momentum=0.9)


@case
def sgd() -> Case:
    return simple(sgd_with(lr=0.1))


@case
def momentum() -> Case:
    return simple(MOMENTUM, later={"lr": 0.01, "momentum": 0.5}, later_torch={"lr": 0.01, "momentum": 0.5})


@case
def nesterov() -> Case:
    return simple(sgd_with(lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01))


@case
def adamw() -> Case:
    later = {"lr": 0.002, "beta1": 0.8, "beta2": 0.99}
    torch_later = {"lr": 0.002, "betas": (0.8, 0.99)}
    options = {"lr": 0.01, "weight_decay": 0.1}
    return simple(lambda p: torch.optim.AdamW(p, **options), later=later, later_torch=torch_later)


@case
def adam() -> Case:
    return simple(
        lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1), later={"lr": 0.002}, later_torch={"lr": 0.002}
    )


@case
def rmsprop() -> Case:
    return simple(lambda p: torch.optim.RMSprop(p, lr=0.002, momentum=0.5, weight_decay=0.01))


@case
def adagrad() -> Case:
    return simple(lambda p: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.01, initial_accumulator_value=0.1))


@case
def lamb_groups() -> Case:
    """No decay of biases."""
    module = mlp()
    first, last = module[0], module[2]
    groups = [
        {"params": [first.weight, last.weight], "weight_decay": 0.1},
        {"params": [first.bias, last.bias], "lr": 0.003},
    ]
    return Case(module=module, optimiser=Lamb(groups, lr=0.01), batch=rows)


class Assigned(nn.Module):
    """A buffer that the forward pass assigns anew, as averages are often kept."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(30).double())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x - self.mean


@case
def assigned_buffer() -> Case:
    return simple(MOMENTUM, mlp(Assigned()))


@case
def weights_in_the_loss() -> Case:
    module = mlp()

    def loss(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        squares = sum(p.square().sum() for p in module.parameters())
        return nn.functional.cross_entropy(outputs, y) + 0.01 * squares

    return simple(MOMENTUM, module, loss=loss)


@case
def adamw_groups() -> Case:
    """A head with another rate, and no decay of biases."""
    module = mlp()
    first, last = module[0], module[2]
    groups = [
        {"params": [first.weight, last.weight]},
        {"params": [first.bias, last.bias], "weight_decay": 0.0, "lr": 0.003},
    ]
    optimiser = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1)
    return Case(module=module, optimiser=optimiser, batch=rows)


@case
def adamw_continued() -> Case:
    return simple(lambda p: torch.optim.AdamW(p, lr=0.01), before=7)


@case
def frozen() -> Case:
    module = mlp()
    module[0].weight.requires_grad_(False)
    return simple(MOMENTUM, module)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(4, 3, bias=False), nn.Linear(4, 3)
        self.decode.weight = self.encode.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decode(torch.tanh(self.encode(x) @ self.encode.weight))


@case
def tied() -> Case:
    return simple(MOMENTUM, Tied().double())


@case
def dropout() -> Case:
    return simple(MOMENTUM, mlp(nn.Dropout(0.25), nn.Linear(30, 30), nn.Dropout(0.5)), seed=-(2**62) + 5)


@case
def dropout_inside_frozen_mode() -> Case:
    """A part in evaluation mode stays so while the whole trains."""
    module = mlp(nn.Dropout(0.5))
    module[2].eval()
    return simple(MOMENTUM, module)


@case
def feature_dropout() -> Case:
    parts = (nn.Unflatten(1, (5, 6)), nn.Dropout1d(0.4), nn.Flatten(), nn.AlphaDropout(0.2))
    return simple(MOMENTUM, mlp(*parts), seed=1)


@case
def accumulation() -> Case:
    return simple(MOMENTUM, mlp(nn.Dropout(0.25), nn.BatchNorm1d(30)), micro_batches=3, options={"accumulation": True})


@case
def clip_norm() -> Case:
    return simple(MOMENTUM, options={"clip": "norm", "defaults": {"clip": 0.3}})


@case
def clip_value() -> Case:
    return simple(
        MOMENTUM, micro_batches=2, options={"clip": "value", "defaults": {"clip": 0.02}, "accumulation": True}
    )


@case
def proximal() -> Case:
    return simple(MOMENTUM, before=3, options={"proximal": True, "clip": "norm", "defaults": {"mu": 0.5, "clip": 0.3}})


class Pair(nn.Module):
    """Tokens of any length and a number; two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.scale = nn.Embedding(11, 6), nn.Linear(2, 6)

    def forward(self, tokens: torch.Tensor, number: torch.Tensor) -> dict[str, torch.Tensor]:
        words = self.embed(tokens)
        return {"mean": words.mean(1) * self.scale(number), "words": words}


def pair_loss(outputs: dict[str, torch.Tensor], y: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(outputs["mean"], y) + outputs["words"].square().mean()


def pairs(generator: np.random.Generator) -> tuple[torch.Tensor, ...]:
    length = int(generator.integers(2, 9))
    tokens = generator.integers(0, 11, (BATCH, length))
    numbers, targets = generator.normal(size=(BATCH, 2)), generator.normal(size=(BATCH, 6))
    return torch.from_numpy(tokens), torch.from_numpy(numbers), torch.from_numpy(targets)


@case
def several_inputs() -> Case:
    module = Pair().double()
    batch = {0: "batch"}
    options = {
        "names": ("tokens", "number", "target"),
        "outputs": ("mean", "words"),
        "dynamic": {"tokens": {0: "batch", 1: "length"}, "number": batch, "target": batch},
        "metrics": {"largest": lambda outputs, y: outputs["words"].abs().mean()},
    }
    optimiser = torch.optim.AdamW(module.parameters(), lr=0.01)
    return Case(module=module, optimiser=optimiser, batch=pairs, loss=pair_loss, options=options)


@case
def single_precision() -> Case:
    module = mlp(nn.Dropout(0.25)).float()
    return Case(
        module=module,
        optimiser=torch.optim.AdamW(module.parameters(), lr=0.01),
        batch=lambda g: tuple(t.float() if t.is_floating_point() else t for t in rows(g)),
    )


def torch_update(case: Case, step: int, batches: list[tuple[torch.Tensor, ...]]) -> float:
    """Update by torch.optim; return the mean loss of the micro-batches."""
    case.optimiser.zero_grad()
    losses = []
    for micro, (*inputs, y) in enumerate(batches):
        with reference_masks(case.seed, step, micro):
            loss = case.loss(case.module(*inputs), y)
        (loss / len(batches)).backward()
        losses.append(loss.item())
    defaults = case.options.get("defaults", {})
    if case.options.get("proximal"):
        for parameter, anchor in zip(case.module.parameters(), case.anchors, strict=True):
            parameter.grad += defaults["mu"] * (parameter.detach() - anchor)
    if case.options.get("clip") == "norm":
        nn.utils.clip_grad_norm_(case.module.parameters(), defaults["clip"])
    if case.options.get("clip") == "value":
        nn.utils.clip_grad_value_(case.module.parameters(), defaults["clip"])
    case.optimiser.step()
    return float(np.mean(losses))


def compare_state(case: Case, runner: Runner) -> dict[str, float]:
    expected = {f"model.{k}": v for k, v in case.module.named_parameters()}
    expected |= {f"model.{k}": v for k, v in case.module.named_buffers()}
    kinds = {"momentum": "momentum_buffer"} | {kind: kind for kind in ("exp_avg", "exp_avg_sq", "square_avg", "sum")}
    for name, parameter in case.module.named_parameters():
        for ours, theirs in kinds.items():
            if theirs in case.optimiser.state.get(parameter, {}):
                expected[f"optimiser.{ours}.{name}"] = case.optimiser.state[parameter][theirs]
    roles = {"parameter", "frozen", "buffer", "optimiser"}
    assert {s.name for s in runner.manifest.state if s.role in roles} == set(expected)
    return {k: difference(runner.state[k], v.detach().numpy()) for k, v in expected.items()}


def compare_evaluation(case: Case, runner: Runner, batch: tuple[torch.Tensor, ...]) -> float:
    """Return the largest difference of the outputs and the loss in evaluation mode."""
    case.module.eval()
    with torch.no_grad():
        outputs = case.module(*batch[:-1])
        loss = case.loss(outputs, batch[-1])
    case.module.train()
    given = runner.run("infer", batch[:-1])
    leaves = list(outputs.values()) if isinstance(outputs, dict) else [outputs]
    found = [difference(g, e.numpy()) for g, e in zip(given.values(), leaves, strict=True)]
    return max(*found, difference(runner.run("eval", batch)["loss"], loss.item()))


def compare(case: Case, folder: Path) -> dict[str, Any]:
    generator = np.random.default_rng(5)
    case.batch(generator)
    for step in range(case.before):
        torch_update(Case(**{**vars(case), "options": {}}), step, [case.batch(generator)])
    case.anchors = [p.detach().clone() for p in case.module.parameters()]  # type: ignore[attr-defined]
    portable_step.export_step(case.module, case.loss, case.optimiser, case.batch(generator), folder, **case.options)
    runner = Runner(folder, case.seed)
    begin = int(runner.state["step"])
    losses: tuple[list[float], list[float]] = ([], [])
    for step in range(begin, begin + UPDATES):
        if step == begin + UPDATES // 2:
            runner.hyper |= {name: np.float64(value) for name, value in case.later.items()}
            for group in case.optimiser.param_groups:
                group |= case.later_torch
        batches = [case.batch(generator) for _ in range(case.micro_batches)]
        losses[0].append(runner.update(batches))
        losses[1].append(torch_update(case, step, batches))
    return {
        "begin": begin,
        "end": int(runner.state["step"]),
        "loss": difference(*losses),
        "first_loss": losses[1][0],
        "last_loss": losses[1][-1],
        "state": compare_state(case, runner),
        "evaluation": compare_evaluation(case, runner, case.batch(generator)),
    }


def main(folder: str, *names: str) -> None:
    torch.set_num_threads(1)
    results = {}
    for name in names or CASES:
        torch.manual_seed(3)
        results[name] = compare(CASES[name](), Path(folder) / name)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
