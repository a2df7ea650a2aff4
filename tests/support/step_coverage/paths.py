"""A case's step and data, and its path: the losses of 100 steps, in ONNX Runtime and in PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch

from step_coverage.case import Case
from transect.portable_step.modules import ModuleStep

STEPS = 100
# How much farther from float64 than PyTorch's float32, or than rounding each result once, one may be.
SLACK = 32.0
UNIT = 2.0**-24

Tensors = dict[str, torch.Tensor]


def step_of(case: Case, module: torch.nn.Module) -> ModuleStep:
    inputs = tuple(f"x{i}" for i in range(len(case.x)))
    return ModuleStep(module=module, loss=case.loss, metrics={}, data=(*inputs, "y"), outputs=None)


def arguments_of(case: Case, module: torch.nn.Module, batch: int, seed: int, dtype: str) -> Tensors:
    """Return state and data by name, in the dtype where they are no integers."""
    step = step_of(case, module)
    data = zip(step.data, (*case.inputs(batch, seed), case.target(batch, seed)), strict=True)
    kind = getattr(torch, dtype)
    given = {name: v.to(kind) if v.is_floating_point() else v for name, v in data}
    return {**step.parameters(), **step.buffers(), **given}


def path_excess(case: Case, module: torch.nn.Module, exact: torch.nn.Module, session: Any) -> float:
    """Return how far the losses of 100 steps of SGD are from float64's, in units of what is tolerated."""
    batches = [arguments_of(case, module, case.batch, 100 + i, "float32") for i in range(4)]
    data = [{k: b[k] for k in step_of(case, module).data} for b in batches]
    doubled = [{k: v.double() if v.is_floating_point() else v for k, v in batch.items()} for batch in data]
    wanted = _losses(case, exact, doubled)
    float32 = _losses(case, module, data)
    found = _runtime_losses(case, module, data, session)
    off = np.maximum.accumulate(np.abs(float32 - wanted))
    # Without any error of PyTorch's own: one rounding of the loss per step.
    tolerated = SLACK * np.maximum(off, UNIT * np.abs(wanted).max() * np.arange(1, STEPS + 1))
    worst = float((np.abs(found - wanted) / tolerated).max())
    return worst if worst == worst else float("inf")


def _losses(case: Case, module: torch.nn.Module, data: list[Tensors]) -> np.ndarray:
    fresh = copy.deepcopy(module)
    inputs = step_of(case, fresh).data[:-1]
    losses = []
    for step in range(STEPS):
        batch = data[step % len(data)]
        loss = case.loss(fresh(*(batch[name] for name in inputs)), batch["y"])
        fresh.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in fresh.parameters():
                parameter -= case.rate * parameter.grad
        losses.append(loss.item())
    return np.array(losses)


def _runtime_losses(case: Case, module: torch.nn.Module, data: list[Tensors], session: Any) -> np.ndarray:
    step = step_of(case, module)
    state = {**step.parameters(), **step.buffers()}
    values = {name: tensor.numpy().copy() for name, tensor in state.items()}
    taken = {value.name for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    losses = []
    for number in range(STEPS):
        fed = values | {k: v.numpy() for k, v in data[number % len(data)].items()}
        made = session.run(None, {k: v for k, v in fed.items() if k in taken})
        found = dict(zip(names, made, strict=True))
        losses.append(float(found["loss"]))
        for name in step.parameters():
            values[name] = values[name] - np.float32(case.rate) * found[f"gradient.{name}"]
        for name in step.buffers():
            values[name] = found[f"next.{name}"]
    return np.array(losses)
