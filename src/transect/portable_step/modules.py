"""The torch side: functions of named tensors for the step, evaluation and inference."""

from __future__ import annotations

import contextlib
import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.errors import BadInput
from transect.portable_step.diagnosis import NoGradient
from transect.portable_step.randomness import close_draws

if TYPE_CHECKING:
    import torch

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
        buffers = [f"model.{name}" for name, _ in self.module.named_buffers()]
        given |= {name: tensors[name].clone() for name in buffers}
        storages = {name: storage_of(tensor) for name, tensor in given.items()}
        with torch.enable_grad(), self._holding(given) as after:
            outputs = self.module(*self._inputs(given))
            loss = self._scalar("loss", self.loss, outputs, given)
            close_draws()
            if not loss.requires_grad:
                raise NoGradient(names[0].removeprefix("model."))
            gradients = torch.autograd.grad(loss, [given[name] for name in names], allow_unused=True)
            metrics = self._metrics(outputs, given)
        untouched = [name for name, g in zip(names, gradients, strict=True) if g is None]
        if untouched:
            raise NoGradient(untouched[0].removeprefix("model."))
        for name in (*names, *buffers):
            short = name.removeprefix("model.")
            refuse_written(short, given[name], after[short], storages[name], buffer=name not in names)
        made = {"loss": loss.detach(), **metrics}
        made |= {f"gradient.{name}": g for name, g in zip(names, gradients, strict=True)}
        return made | {f"next.{name}": _next(name, given[name], after) for name in buffers}

    def predict(self, tensors: Mapping[str, torch.Tensor]) -> Tensors:
        """Return loss and metrics of a batch and the module's outputs, as in prediction."""
        import torch

        with torch.no_grad(), self._predicting(), self._holding(tensors):
            outputs = self.module(*self._inputs(tensors))
            named = self._named(outputs)
            loss = self._scalar("loss", self.loss, outputs, tensors)
            made = {"loss": loss, **self._metrics(outputs, tensors)}
        refuse_twice((*made, *named))
        return made | named

    def _named(self, outputs: Any) -> Tensors:
        """Return the module's outputs by name, as they are before the loss may write into them."""
        import torch
        from torch.utils import _pytree as pytree

        leaves = pytree.tree_leaves(outputs)
        if strange := [leaf for leaf in leaves if not isinstance(leaf, torch.Tensor)]:
            raise BadInput(f"module: one of its outputs is {strange[0]!r}, expected tensors alone")
        names = self.outputs or (["output"] if len(leaves) == 1 else [f"output.{i}" for i in range(len(leaves))])
        if len(names) != len(leaves):
            raise BadInput(f"outputs: {len(names)} names for {len(leaves)} outputs of the module")
        return {name: leaf.clone() for name, leaf in zip(names, leaves, strict=True)}

    @contextlib.contextmanager
    def _holding(self, tensors: Mapping[str, torch.Tensor]) -> Iterator[Tensors]:
        """Let the module hold these parameters and buffers, for the loss and the backward pass too.

        A loss may read weights, and activation checkpointing runs the module once more. Yields them
        by the module's names: what the module assigns anew stands there afterwards.
        """
        from torch.nn.utils.stateless import _reparametrize_module

        state = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name.startswith("model.")}
        with _reparametrize_module(self.module, state, tie_weights=True):
            yield state

    def _inputs(self, tensors: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        return [tensors[name] for name in self.data[:-1]]

    def _metrics(self, outputs: Any, tensors: Mapping[str, torch.Tensor]) -> Tensors:
        return {name: self._scalar(name, metric, outputs, tensors).detach() for name, metric in self.metrics.items()}

    def _scalar(self, name: str, function: Scalar, outputs: Any, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        import torch

        value = function(outputs, tensors[self.data[-1]])
        if not isinstance(value, torch.Tensor) or value.ndim:
            given = list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise BadInput(f"{name}: expected a scalar tensor, a mean over the batch, got {given}")
        return value

    @contextlib.contextmanager
    def _predicting(self) -> Iterator[None]:
        modes = {part: part.training for part in self.module.modules()}
        self.module.eval()
        try:
            yield
        finally:
            for part, training in modes.items():
                part.training = training


def refuse_twice(names: Iterable[str]) -> None:
    """Raise BadInput when two inputs or outputs of a step would have one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInput(f"{name}: two of data, hyper-parameters, state and outputs have this name")
        seen.add(name)


@contextlib.contextmanager
def forgetting(module: torch.nn.Module, functions: Mapping[str, Any]) -> Iterator[None]:
    """Put back afterwards what attributes of the module's parts, the loss and the metrics were.

    A trace leaves tensors without content in them.
    """
    owners = [
        owner.__dict__
        for owner in (*module.modules(), *functions.values())
        if isinstance(getattr(owner, "__dict__", None), dict)
    ]
    kept = [(attributes, dict(attributes)) for attributes in owners]
    held = [(container, container.copy()) for container in _containers(owners)]
    try:
        yield
    finally:
        for container, items in held:
            container.clear()
            (container.update if isinstance(container, dict) else container.extend)(items)
        for attributes, before in kept:
            attributes.clear()
            attributes.update(before)


_CONTAINERS = (list, deque, dict, OrderedDict, defaultdict)


def _containers(owners: Iterable[Any]) -> list[Any]:
    """Return the lists and dictionaries that attributes hold, and those in them."""
    found: dict[int, Any] = {}
    waiting = [held for owner in owners for held in owner.values()]
    while waiting:
        held = waiting.pop()
        if type(held) in _CONTAINERS and id(held) not in found:
            found[id(held)] = held
            waiting += held.values() if isinstance(held, dict) else held
    return [*found.values()]


# Dictionaries of a module in which its tensors and parts stand.
_TORCH_ATTRIBUTES = ("_parameters", "_buffers", "_modules")


def _plain(value: Any) -> Any:
    """Return what can be compared of a number, a text or a container of these; None for anything else.

    In a dictionary that is left out: tensors that a module keeps at hand are no numbers of its own.
    """
    if isinstance(value, (Number, str, bytes)):
        return value
    if isinstance(value, dict):
        items = {key: _plain(item) for key, item in value.items()}
        return {key: plain for key, plain in items.items() if plain is not None}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple, deque)) else None


def python_values(module: torch.nn.Module, functions: Mapping[str, Any]) -> dict[str, Any]:
    """Return what parts of the module, the loss and the metrics keep in Python, and where shared generators are."""
    parts = {f"{name or 'the module'} ({type(part).__name__})": part for name, part in module.named_modules()}
    state = np.random.get_state(legacy=False)["state"]
    found = {"Python: random": random.getstate(), "numpy: random": (state["pos"], state["key"].tobytes())}
    for name, part in (parts | dict(functions)).items():
        classes = [cls for cls in type(part).__mro__ if cls.__module__.partition(".")[0] not in ("torch", "builtins")]
        for owner in (part, *classes):
            for key, value in dict(getattr(owner, "__dict__", {})).items():
                if key not in _TORCH_ATTRIBUTES and not key.startswith("__") and (plain := _plain(value)) is not None:
                    found[f"{name}: {key}"] = plain
    return found


def refuse_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Raise BadInput for a value that a trace has found and changed: it would stay what it is now."""
    for key, old in before.items():
        if key in after and old == old and after[key] != old:
            raise BadInput(
                f"{key} changes in a step, which a graph does not remember. Expected a buffer of the module "
                "(register_buffer), no change, and no random numbers but dropout's"
            )


def storage_of(tensor: torch.Tensor) -> int:
    """Return what tells a tensor's storage from another, also while it is traced."""
    return int(tensor.untyped_storage()._cdata)


def refuse_written(name: str, tensor: torch.Tensor, after: torch.Tensor, storage: int, buffer: bool) -> None:
    """Raise BadInput for a parameter that the forward pass wrote, or a buffer whose `.data` it set.

    `storage` is that of `tensor` before.
    """
    import torch
    from torch._subclasses.functional_tensor import FunctionalTensor

    swapped = storage_of(tensor) != storage
    written = swapped or after is not tensor
    if isinstance(tensor, FunctionalTensor):
        written = written or torch._functionalize_has_data_mutation(tensor.elem)
    if buffer and swapped:
        raise BadInput(f"{name}: its `.data` is set, expected `copy_` or an assignment")
    if written and not buffer:
        raise BadInput(
            f"{name}: the forward pass writes this parameter, as max_norm of an embedding does; in a "
            "step only the optimiser can. Expected a function of it, as by a parametrization"
        )


def _next(name: str, old: torch.Tensor, after: Tensors) -> torch.Tensor:
    short = name.removeprefix("model.")
    new = after[short].detach()
    if (new.dtype, new.shape) != (old.dtype, old.shape):
        raise BadInput(
            f"{short}: the forward pass makes this buffer {new.dtype} {list(new.shape)}, expected it "
            f"to stay {old.dtype} {list(old.shape)}"
        )
    return new
