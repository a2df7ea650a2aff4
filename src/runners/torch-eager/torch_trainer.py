"""A portable training step's workload, trained by PyTorch itself: module, autograd, torch.optim.

Begins with the step's own state file and writes the same: tensors by the manifest's names.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from eager import set_up
from step_folder import Step
from step_workload import StepWorkload, read_step_workload
from tensors import BadInput

if TYPE_CHECKING:
    import torch

_HYPER = ("lr", "momentum", "weight_decay", "beta1", "beta2", "eps", "clip")
# Kinds of tensor in an optimiser's state: the manifest's names, and torch's.
_KEPT = {"momentum": "momentum_buffer", "exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}


class TorchTrainer:
    """Eager mode. A subclass may compile what computes the loss."""

    def __init__(self, given: argparse.Namespace, step: Step) -> None:
        told = read_step_workload(given.step, step, _HYPER)
        self._step, self._counter = step, 0
        self._inputs = _ends(step)
        import torch

        from transect.training.models import TorchModel
        from transect.training.workloads import WORKLOADS, model_of

        self.facts: dict[str, Any] = set_up(given) | {"run_includes": []}
        self._device = given.provider
        begin = time.monotonic_ns()
        if told.name not in WORKLOADS:
            raise BadInput(f"{given.step}: unknown workload '{told.name}'")
        dtype = next(t.dtype for t in step.state if t.name.startswith("model."))
        model = model_of(WORKLOADS.get(told.name))
        if not isinstance(model, TorchModel):
            raise BadInput(f"{given.step}: workload '{told.name}' gives no module of torch")
        module = model.torch_module().train()
        module.to(self._device, getattr(torch, dtype))
        self._module = module
        self._parameters = dict(module.named_parameters())
        # A step keeps buffers too that a module's own state leaves out.
        held = module.state_dict() | dict(module.named_buffers())
        self._tensors = {f"model.{name}": tensor for name, tensor in held.items()}
        self._kept = self._check_state(told)
        self._optimiser = _optimiser(told, list(self._parameters.values()))
        self._loss = _loss_of(told.loss)
        self.compute: Callable[..., Any] = self._compute
        self.prepare()
        self.session_ns = time.monotonic_ns() - begin
        self.metrics: list[float] = []
        self._torch = torch
        self._micro_batches = 0

    def prepare(self) -> None:
        """Replace `compute`, which gives loss and accuracy of a batch."""

    def _check_state(self, told: StepWorkload) -> dict[str, tuple[str, str]]:
        """Return kind and parameter of each tensor of the optimiser.

        Raises BadInput where the state is not that of the workload's module and its optimiser.
        """
        kept, held = {}, set()
        for tensor in self._step.state:
            start, _, rest = tensor.name.partition(".")
            if start == "model":
                held.add(tensor.name)
                own = self._tensors.get(tensor.name)
                shape = None if own is None else tuple(own.shape)
                if shape != tensor.shape:
                    raise BadInput(
                        f"state '{tensor.name}' of shape {tensor.shape}: workload '{told.name}' "
                        f"has {shape or 'no such tensor'}"
                    )
            elif start == "optimiser":
                kind, _, parameter = rest.partition(".")
                if kind not in _KEPT or parameter not in self._parameters:
                    raise BadInput(f"state '{tensor.name}' is none of this runner's optimisers")
                kept[tensor.name] = (kind, parameter)
            elif start == "anchor":
                raise BadInput(f"state '{tensor.name}': this runner has no proximal term")
        if missing := sorted(self._tensors.keys() - held):
            raise BadInput(f"state: '{missing[0]}' of workload '{told.name}' is not there")
        return kept

    def start(self, state: dict[str, np.ndarray]) -> None:
        """Fill the module and the optimiser."""
        torch = self._torch
        self._given = state
        self._counter = int(state[self._step.counter])
        with torch.no_grad():
            for name, tensor in self._tensors.items():
                tensor.copy_(torch.from_numpy(state[name].copy()))
        for name, (kind, parameter) in self._kept.items():
            owner = self._parameters[parameter]
            kept = self._optimiser.state[owner]
            kept[_KEPT[kind]] = torch.from_numpy(state[name].copy()).to(self._device)
            if kind == "exp_avg":
                kept["step"] = torch.tensor(float(self._counter))

    def run(self, graph: str, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Do a micro-batch; with the graph `step` update by the mean of those since the last."""
        clock = time.monotonic_ns
        t0 = clock()
        x, y = (self._torch.from_numpy(feed[name]).to(self._device) for name in self._inputs)
        self._set_hyper(feed)
        self._wait()
        t1 = clock()
        if not self._micro_batches:
            self._optimiser.zero_grad()
        loss, accuracy = self.compute(x, y)
        loss.backward()
        self._micro_batches += 1
        if graph == "step":
            self._take_step(feed)
        self._wait()
        t2 = clock()
        self.metrics = [loss.item(), accuracy.item()][: len(self._step.metrics)]
        return t1 - t0, t2 - t1, clock() - t2

    def _take_step(self, feed: dict[str, np.ndarray]) -> None:
        if self._micro_batches > 1:
            for parameter in self._parameters.values():
                parameter.grad /= self._micro_batches
        if "clip" in feed:
            bound = float(feed["clip"])
            self._torch.nn.utils.clip_grad_norm_(self._parameters.values(), bound)
        self._optimiser.step()
        self._counter, self._micro_batches = self._counter + 1, 0

    def _set_hyper(self, feed: dict[str, np.ndarray]) -> None:
        for group in self._optimiser.param_groups:
            for name in ("lr", "momentum", "weight_decay", "eps"):
                if name in feed:
                    group[name] = float(feed[name])
            if "beta1" in feed:
                group["betas"] = (float(feed["beta1"]), float(feed["beta2"]))

    def _wait(self) -> None:
        if self._device == "cuda":
            self._torch.cuda.synchronize()

    def _compute(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        outputs = self._module(x)
        return self._loss(outputs, y), (outputs.detach().argmax(1) == y).float().mean()

    def state(self) -> dict[str, np.ndarray]:
        """Return the state by the manifest's names; what no step changes as it was given."""
        state = dict(self._given)
        state[self._step.counter] = np.array(self._counter, np.int64)
        for name, tensor in self._tensors.items():
            state[name] = tensor.detach().cpu().numpy()
        for name, (kind, parameter) in self._kept.items():
            kept = self._optimiser.state[self._parameters[parameter]]
            state[name] = kept[_KEPT[kind]].cpu().numpy()
        return state


def _ends(step: Step) -> tuple[str, str]:
    """Return the names of the one input and the one target."""
    if len(step.data) != 2:
        raise BadInput(f"the step takes {sorted(step.data)}, a workload of transect x and y")
    x, y = step.data
    if list(step.metrics) not in (["loss"], ["loss", "accuracy"]):
        raise BadInput(f"the step has the metrics {list(step.metrics)}, this runner loss and accuracy")
    return x, y


def _optimiser(told: StepWorkload, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
    """Return torch's own; its hyper-parameters are set before each step."""
    import torch

    if told.rule == "adamw":
        return torch.optim.AdamW(parameters, weight_decay=0.0)
    nesterov = told.rule == "nesterov"
    momentum = 0.9 if told.momentum else 0.0
    return torch.optim.SGD(parameters, lr=0.0, momentum=momentum, nesterov=nesterov)


def _loss_of(name: str) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    import torch

    def half_squared_distance(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        one_hot = torch.nn.functional.one_hot(y, outputs.shape[1]).to(outputs.dtype)
        return 0.5 * (outputs - one_hot).square().sum() / len(y)

    if name not in ("mse", "cross-entropy"):
        raise BadInput(f"loss '{name}', expected cross-entropy or mse")
    return half_squared_distance if name == "mse" else torch.nn.functional.cross_entropy
