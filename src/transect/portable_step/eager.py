"""A step as PyTorch computes it for its user: the module, its loss, `backward` and the optimiser."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.portable_step.distances import distances
from transect.portable_step.modules import ModuleStep, forgetting
from transect.portable_step.optimisers import STATES, Optimiser
from transect.portable_step.randomness import reference_masks

if TYPE_CHECKING:
    import torch

FLOAT32 = float(np.finfo(np.float32).eps)
Arrays = dict[str, np.ndarray]
# How far each result moves, by name, when operators round by so many roundings.
Movement = Callable[[float], Mapping[str, float]]
# How many runs with more than one rounding show how far results jump.
JUMPS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Eager:
    """Runs on the user's own module, loss and optimiser; within `borrowed` alone."""

    model: ModuleStep
    optimiser: torch.optim.Optimizer
    rule: Optimiser
    clip: str | None
    buffers: Mapping[str, torch.Tensor]

    def step(
        self, state: Mapping[str, np.ndarray], batch: Sequence[torch.Tensor], hyper: Mapping[str, float], seed: int
    ) -> Arrays:
        """Return loss and metrics, the next state, and gradients before clipping (`gradient.*`)."""
        import torch

        module = self.model.module
        self._load(state, hyper)
        self.optimiser.zero_grad()
        module.zero_grad()
        *inputs, target = (tensor.clone() for tensor in batch)
        with reference_masks(seed, int(state["step"])):
            outputs = module(*inputs)
            loss = self.model.loss(outputs, target)
        loss.backward()
        made = {"loss": loss}
        with torch.no_grad():
            made |= {name: f(outputs, target) for name, f in self.model.metrics.items()}
        trained = {f"model.{n}": p for n, p in module.named_parameters() if p.requires_grad}
        # `step` overwrites no gradient, but clipping does.
        made |= {f"gradient.{n}": p.grad.clone() if self.clip else p.grad for n, p in trained.items()}
        if self.clip == "norm":
            torch.nn.utils.clip_grad_norm_(list(trained.values()), hyper["clip"])
        elif self.clip == "value":
            torch.nn.utils.clip_grad_value_(list(trained.values()), hyper["clip"])
        self.optimiser.step()
        made |= {f"next.{name}": p for name, p in trained.items()}
        made |= {f"next.model.{name}": b for name, b in module.named_buffers()}
        for kind, name in self.rule.states:
            kept = self.optimiser.state[trained[name]][STATES[self.rule.rule][kind]]
            made[f"next.optimiser.{kind}.{name.removeprefix('model.')}"] = kept
        return {name: tensor.detach().numpy().copy() for name, tensor in made.items()}

    def predict(self, state: Mapping[str, np.ndarray], batch: Sequence[torch.Tensor]) -> Arrays:
        """Return loss, metrics and the outputs (`output N`), as in prediction."""
        import torch
        from torch.utils import _pytree as pytree

        module = self.model.module
        self._load(state, {})
        modes = {part: part.training for part in module.modules()}
        *inputs, target = (tensor.clone() for tensor in batch)
        try:
            with torch.no_grad():
                module.eval()
                outputs = module(*inputs)
                # Loss and metrics may write into them.
                leaves = [leaf.detach().clone() for leaf in pytree.tree_leaves(outputs)]
                made = {"loss": self.model.loss(outputs, target)}
                made |= {name: f(outputs, target) for name, f in self.model.metrics.items()}
                made |= {f"output {i}": leaf for i, leaf in enumerate(leaves)}
        finally:
            for part, training in modes.items():
                part.training = training
        return {name: tensor.detach().numpy().copy() for name, tensor in made.items()}

    def _load(self, state: Mapping[str, np.ndarray], hyper: Mapping[str, float]) -> None:
        """Let module and optimiser be in this state, the optimiser's groups with these numbers."""
        import torch

        module = self.model.module
        _put_buffers(module, self.buffers)
        with torch.no_grad():
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                tensor.copy_(torch.from_numpy(state[f"model.{name}"]))
        if not hyper:
            return
        parameters = {f"model.{name}": p for name, p in module.named_parameters()}
        for name, kind in ((name, kind) for kind, name in self.rule.states):
            array = state[f"optimiser.{kind}.{name.removeprefix('model.')}"]
            slots = self.optimiser.state[parameters[name]]
            slots[STATES[self.rule.rule][kind]] = torch.from_numpy(array.copy())
            if self.rule.rule != "sgd":
                slots["step"] = torch.tensor(float(state["step"]))
        for group, torch_group in zip(self.rule.groups, self.optimiser.param_groups, strict=True):
            values = {name: hyper[given] for name, given in group.hyper.items()}
            if "beta1" in values:
                torch_group["betas"] = (values.pop("beta1"), values.pop("beta2"))
            torch_group.update(values)

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[None]:
        """Give module, loss and optimiser back as they were."""
        import torch

        module = self.model.module
        tensors = {t: t.detach().clone() for t in (*module.parameters(), *self.buffers.values())}
        gradients = {p: p.grad for p in module.parameters()}
        states = {p: dict(kept) for p, kept in self.optimiser.state.items()}
        groups = [dict(group) for group in self.optimiser.param_groups]
        # A gradient of the user's is not written into.
        for parameter in gradients:
            parameter.grad = None
        try:
            with forgetting(module, {"loss": self.model.loss, **self.model.metrics}):
                yield
        finally:
            with torch.no_grad():
                for tensor, before in tensors.items():
                    tensor.copy_(before)
            for parameter, gradient in gradients.items():
                parameter.grad = gradient
            self.optimiser.state.clear()
            self.optimiser.state.update(states)
            for torch_group, group in zip(self.optimiser.param_groups, groups, strict=True):
                torch_group.clear()
                torch_group.update(group)


def unit_of(dtype: np.dtype) -> float:
    """Return how far a result of this dtype may be rounded: 0 for what is no float."""
    if dtype.kind != "f":
        return 0.0
    return float(max(np.finfo(dtype).eps, FLOAT32)) / 2


def _put_buffers(module: torch.nn.Module, buffers: Mapping[str, torch.Tensor]) -> None:
    """Put the tensors themselves back: a forward pass may have assigned others."""
    for name, tensor in buffers.items():
        owner, _, leaf = name.rpartition(".")
        module.get_submodule(owner)._buffers[leaf] = tensor


@contextlib.contextmanager
def rounding(seed: int, times: float = 1.0) -> Iterator[None]:
    """Let each operator's result be off by up to `times` a rounding of float32, forwards and backwards.

    In float64 too, for attributes of ONNX's operators, such as the epsilon of a norm, are float32 in any graph. In float16
    it is at least one of its own, which is 8192 of float32: 256 of its own would be a quarter of a result.

    How far the results move is what their precision may cost (stochastic arithmetic; Parker, UCLA 1997).
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    generator = torch.Generator().manual_seed(seed)

    def off(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        noise = torch.rand(value.shape, generator=generator, dtype=value.dtype)
        eps = max(torch.finfo(value.dtype).eps, times * FLOAT32)
        return value * noise.mul_(eps).add_(1 - eps / 2)

    def is_count(func: Any, args: Any) -> bool:
        tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]
        whole = bool(tensors) and not any(tensor.is_floating_point() for tensor in tensors)
        return whole or func is torch.ops.aten.histc.default

    class Rounding(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            # What is a view, or was written into, must stay the tensor that it is; a count is exact.
            if any(returned.alias_info is not None for returned in func._schema.returns) or is_count(func, args):
                return made
            with torch.no_grad():
                return torch.utils._pytree.tree_map(off, made)

    with Rounding():
        yield


def movement(run: Callable[[], Arrays], want: Arrays, seeds: Sequence[int]) -> Movement:
    """Return a function of how many roundings each operator errs by; it returns how far each result of `run` moves then.

    That is the farthest of several runs: one for each seed where it is one rounding, else `JUMPS`.
    """

    @cache
    def moved(times: float) -> dict[str, float]:
        farthest = dict.fromkeys(want, 0.0)
        for seed in seeds if times == 1.0 else range(JUMPS):
            try:
                with rounding(seed, times):
                    noisy = run()
            except RuntimeError:
                # PyTorch looks at values too, such as whether a probability is beyond 1: such a run shows nothing.
                continue
            found = distances(noisy, want)
            if times > 1.0:
                # One whose numbers overflow does not tell how far results jump either.
                found = {k: far if np.isfinite(far) else 0.0 for k, far in found.items()}
            farthest = {k: max(far, farthest[k]) for k, far in found.items()}
        return farthest

    return moved
