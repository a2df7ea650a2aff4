"""A portable training step's workload, trained by PyTorch itself: module, autograd, torch.optim.

Begins with the step's own state and leaves the same: tensors by the plan's names.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from engines import Skip
from plan import DTYPES, Plan, Role
from workload import read_step_workload

if TYPE_CHECKING:
    import torch

_THREADS = {"intra_op_num_threads": "num_threads", "inter_op_num_threads": "num_interop_threads"}
# Kinds of tensor in an optimiser's state: the plan's names, and torch's.
_KEPT = {"momentum": "momentum_buffer", "exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}


def set_up(plan: Plan) -> dict[str, Any]:
    """Set the number of threads, and float32 as float32; return the facts of both.

    Raises Skip where PyTorch sees no CUDA device and one is asked for.
    """
    import torch

    provider = plan.text(Role.PROVIDER)
    if provider == "cuda" and not torch.cuda.is_available():
        raise Skip("this build of PyTorch sees no CUDA device")
    told: dict[str, Any] = {"tf32": False}
    for name in plan.options.keys() & _THREADS.keys():
        # 0 is the library's own choice.
        if threads := int(plan.options[name]):
            getattr(torch, f"set_{_THREADS[name]}")(threads)
        told[name] = getattr(torch, f"get_{_THREADS[name]}")()
    # TF32 is not float32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return {
        "runtime_version": torch.__version__,
        "provider_used": provider,
        "session_options": told,
        "options_not_set": sorted(plan.options.keys() - told),
        "run_includes": [],
    }


class TorchTrainer:
    """Eager mode. A subclass may compile what computes the loss."""

    def __init__(self, plan: Plan) -> None:
        name, rule, loss = read_step_workload(plan)
        self._x, self._y = (entry.number for entry in plan.of(Role.DATA))
        self._hyper = {entry.name: entry.number for entry in plan.of(Role.HYPER)}
        import torch

        from transect.training.workloads import WORKLOADS, model_of

        self.facts: dict[str, Any] = set_up(plan)
        self._torch, self._device = torch, self.facts["provider_used"]
        begin = time.monotonic_ns()
        model: Any = model_of(WORKLOADS.get(name))
        weight = next(entry for entry in plan.of(Role.STATE) if entry.name.startswith("model."))
        self._module = model.torch_module().train()
        self._module.to(self._device, torch.from_numpy(np.zeros(1, DTYPES[weight.dtype])).dtype)
        self._parameters = dict(self._module.named_parameters())
        # Hyper-parameters are set before each step.
        parameters, momentum = self._parameters.values(), 0.9 if "momentum" in self._hyper else 0.0
        self._optimiser: torch.optim.Optimizer = (
            torch.optim.AdamW(parameters, weight_decay=0.0)
            if rule == "adamw"
            else torch.optim.SGD(parameters, lr=0.0, momentum=momentum, nesterov=rule == "nesterov")
        )
        self._loss = _half_squared_distance if loss == "mse" else torch.nn.functional.cross_entropy
        self.compute: Callable[..., Any] = self._compute
        self.prepare()
        self.facts["session_ns"] = time.monotonic_ns() - begin
        self.metrics: list[float] = []
        self._updates, self._micro_batches = plan.first_step, 0
        self._take(plan)

    def prepare(self) -> None:
        """Replace `compute`, which gives loss and accuracy of a batch."""

    def _take(self, plan: Plan) -> None:
        """Fill the module and the optimiser; keep what holds each tensor of the state by its number."""
        torch = self._torch
        # A step keeps buffers too that a module's own state leaves out.
        held = self._module.state_dict() | dict(self._module.named_buffers())
        self._given: dict[int, np.ndarray] = {}
        self._tensors: dict[int, Any] = {}
        self._kept: dict[int, tuple[dict[str, Any], str]] = {}
        for entry in plan.of(Role.STATE):
            self._given[entry.number] = array = entry.array()
            start, _, rest = entry.name.partition(".")
            if entry.name == "step":
                self._counter = entry.number
            elif start == "model":
                self._tensors[entry.number] = held[rest]
                with torch.no_grad():
                    held[rest].copy_(torch.from_numpy(array))
            elif start == "optimiser":
                kind, _, parameter = rest.partition(".")
                kept = self._optimiser.state[self._parameters[parameter]]
                kept[_KEPT[kind]] = torch.from_numpy(array.copy()).to(self._device)
                if kind == "exp_avg":
                    kept["step"] = torch.tensor(float(self._updates))
                self._kept[entry.number] = (kept, _KEPT[kind])

    def run(self, graph: str, feed: dict[int, np.ndarray]) -> tuple[int, int, int]:
        """Do a micro-batch; with the graph `step` update by the mean of those since the last."""
        clock = time.monotonic_ns
        t0 = clock()
        x, y = (self._torch.from_numpy(feed[number]).to(self._device) for number in (self._x, self._y))
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
        self.metrics = [loss.item(), accuracy.item()]
        return t1 - t0, t2 - t1, clock() - t2

    def _take_step(self, feed: dict[int, np.ndarray]) -> None:
        if self._micro_batches > 1:
            for parameter in self._parameters.values():
                parameter.grad /= self._micro_batches
        if "clip" in self._hyper:
            bound = float(feed[self._hyper["clip"]])
            self._torch.nn.utils.clip_grad_norm_(self._parameters.values(), bound)
        self._optimiser.step()
        self._updates, self._micro_batches = self._updates + 1, 0

    def _set_hyper(self, feed: dict[int, np.ndarray]) -> None:
        hyper = self._hyper
        for group in self._optimiser.param_groups:
            for name in ("lr", "momentum", "weight_decay", "eps"):
                if name in hyper:
                    group[name] = float(feed[hyper[name]])
            if "beta1" in hyper:
                group["betas"] = (float(feed[hyper["beta1"]]), float(feed[hyper["beta2"]]))

    def _wait(self) -> None:
        if self._device == "cuda":
            self._torch.cuda.synchronize()

    def _compute(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        outputs = self._module(x)
        return self._loss(outputs, y), (outputs.detach().argmax(1) == y).float().mean()

    def state(self) -> dict[int, np.ndarray]:
        """Return the state; what no step changes as it was given."""
        state = self._given | {self._counter: np.array(self._updates, np.int64)}
        state |= {number: tensor.detach().cpu().numpy() for number, tensor in self._tensors.items()}
        return state | {number: kept[name].cpu().numpy() for number, (kept, name) in self._kept.items()}


def _half_squared_distance(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    import torch

    one_hot = torch.nn.functional.one_hot(y, outputs.shape[1]).to(outputs.dtype)
    return 0.5 * (outputs - one_hot).square().sum() / len(y)
