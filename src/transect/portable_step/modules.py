"""The torch side: functions of named tensors for the step, evaluation and inference."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transect.domain.errors import BadInput
from transect.portable_step.randomness import close_draws

if TYPE_CHECKING:
    import torch

__all__ = ["ModuleStep", "accuracy"]

Tensors = dict[str, "torch.Tensor"]
Scalar = Callable[[Any, Any], Any]


def accuracy(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Share of rows whose largest output, along axis 1, is that of the class `y`."""
    return (outputs.argmax(1) == y).to(outputs.dtype).mean()


METRICS: dict[str, Scalar] = {"accuracy": accuracy}


@dataclass(frozen=True, kw_only=True, slots=True)
class ModuleStep:
    """A module with its loss, over tensors by name. The last of `data` is the target.

    Names of parameters and buffers have the prefix `model.`, gradients `gradient.`, what a step
    makes of buffers `next.model.`.
    """

    module: torch.nn.Module
    loss: Scalar
    metrics: Mapping[str, Scalar]
    data: tuple[str, ...]
    outputs: Sequence[str] | None

    def parameters(self) -> Tensors:
        """Return trained and frozen parameters, shared ones once."""
        return {f"model.{name}": p.detach() for name, p in self.module.named_parameters()}

    def trained(self) -> list[str]:
        """Return the names of the parameters that require gradients."""
        return [f"model.{name}" for name, p in self.module.named_parameters() if p.requires_grad]

    def buffers(self) -> Tensors:
        """Return the buffers, such as running statistics."""
        return {f"model.{name}": b.detach() for name, b in self.module.named_buffers()}

    def gradients(self, tensors: Mapping[str, torch.Tensor]) -> Tensors:
        """Return loss, metrics, gradients and next buffers of a batch, in training mode."""
        import torch

        names = self.trained()
        given = dict(tensors)
        given |= {name: tensors[name].detach().requires_grad_() for name in names}
        given |= {name: tensors[name].clone() for name in self.buffers()}
        with torch.enable_grad():
            outputs = self._call(given)
            loss = self._scalar("loss", self.loss, outputs, given)
            close_draws()
            gradients = torch.autograd.grad(
                loss, [given[name] for name in names], allow_unused=True
            )
        untouched = [name for name, g in zip(names, gradients, strict=True) if g is None]
        if untouched:
            raise BadInput(
                f"{untouched[0].removeprefix('model.')}: the loss has no gradient by this parameter; "
                "freeze it with requires_grad_(False), or see which operator cuts the way"
            )
        made = {"loss": loss.detach(), **self._metrics(outputs, given)}
        made |= {f"gradient.{name}": g for name, g in zip(names, gradients, strict=True)}
        return made | {f"next.{name}": given[name] for name in self.buffers()}

    def evaluate(self, tensors: Mapping[str, torch.Tensor]) -> Tensors:
        """Return loss and metrics of a batch, as in prediction."""
        import torch

        with torch.no_grad(), self._predicting():
            outputs = self._call(tensors)
            loss = self._scalar("loss", self.loss, outputs, tensors)
            return {"loss": loss, **self._metrics(outputs, tensors)}

    def infer(self, tensors: Mapping[str, torch.Tensor]) -> Tensors:
        """Return the module's outputs, as in prediction."""
        import torch
        from torch.utils import _pytree as pytree

        with torch.no_grad(), self._predicting():
            leaves = pytree.tree_leaves(self._call(tensors))
        names = self.outputs or (
            ["output"] if len(leaves) == 1 else [f"output.{i}" for i in range(len(leaves))]
        )
        if len(names) != len(leaves):
            raise BadInput(f"outputs: {len(names)} names for {len(leaves)} outputs of the module")
        return dict(zip(names, leaves, strict=True))

    def _call(self, tensors: Mapping[str, torch.Tensor]) -> Any:
        from torch.func import functional_call

        state = {
            name.removeprefix("model."): tensor
            for name, tensor in tensors.items()
            if name.startswith("model.")
        }
        inputs = tuple(tensors[name] for name in self.data[:-1])
        return functional_call(self.module, state, inputs)

    def _metrics(self, outputs: Any, tensors: Mapping[str, torch.Tensor]) -> Tensors:
        return {
            name: self._scalar(name, metric, outputs, tensors).detach()
            for name, metric in self.metrics.items()
        }

    def _scalar(
        self, name: str, function: Scalar, outputs: Any, tensors: Mapping[str, torch.Tensor]
    ) -> torch.Tensor:
        import torch

        value = function(outputs, tensors[self.data[-1]])
        if not isinstance(value, torch.Tensor) or value.ndim:
            given = list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise BadInput(f"{name}: expected a scalar tensor, a mean over the batch, got {given}")
        return value

    @contextlib.contextmanager
    def _predicting(self) -> Iterator[None]:
        """Put the module into evaluation mode, and each part back into its own afterwards."""
        modes = {part: part.training for part in self.module.modules()}
        self.module.eval()
        try:
            yield
        finally:
            for part, training in modes.items():
                part.training = training
