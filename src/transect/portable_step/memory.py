"""What a forward pass changes beside buffers: a graph has no memory for it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.errors import BadInput

if TYPE_CHECKING:
    import torch

__all__ = ["Kept", "forgetting", "refuse_kept", "refuse_written", "storage_of"]

# Dictionaries of a module in which its tensors stand.
TENSORS = ("_parameters", "_buffers")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """What a module had: attributes by part, parameters and buffers by name.

    `generators`: the states of those of random numbers that everyone shares.
    """

    attributes: Mapping[str, Mapping[str, Any]]
    tensors: Mapping[str, torch.Tensor]
    generators: Mapping[str, str]


@contextmanager
def forgetting(module: torch.nn.Module) -> Iterator[Kept]:
    """Put the module's parts back afterwards: a trace leaves tensors without content in them."""
    parts = dict(module.named_modules())
    attributes = {name: dict(vars(part)) for name, part in parts.items()}
    tensors = {
        (name, kind): dict(vars(part)[kind]) for name, part in parts.items() for kind in TENSORS
    }
    named = dict((*module.named_parameters(), *module.named_buffers()))
    try:
        yield Kept(attributes=attributes, tensors=named, generators=_generators())
    finally:
        for name, part in parts.items():
            vars(part).clear()
            vars(part).update(attributes[name])
            for kind in TENSORS:
                vars(part)[kind].clear()
                vars(part)[kind].update(tensors[name, kind])


def refuse_kept(module: torch.nn.Module, before: Kept, graph: torch.fx.GraphModule) -> None:
    """Raise BadInput for what the next forward pass would find changed, other than buffers.

    A tensor that each pass writes before it reads, or that the first one makes, does no harm.
    """
    for generator, state in _generators().items():
        if state != before.generators[generator]:
            raise BadInput(
                f"module: it draws from {generator}'s generator of random numbers, and the graph "
                "would have the same number at each step; of these only dropout's can be exported"
            )
    read = {storage_of(value) for value in _constants(graph)}
    for name, tensor in before.tensors.items():
        if storage_of(tensor) in read:
            raise BadInput(
                f"{name}: it is read by another way than from the module, and would be a constant, "
                "as in a loss that holds a list of parameters; expected it to ask the module for them"
            )
    for name, part in module.named_modules():
        for key, old in before.attributes[name].items():
            if _differs(old, vars(part).get(key), read):
                raise BadInput(
                    f"{name or 'the module'} ({type(part).__name__}): its forward pass changes the "
                    f"attribute {key}, which a graph does not remember; expected a buffer: "
                    "register_buffer"
                )


def storage_of(tensor: torch.Tensor) -> int:
    """Return what tells a tensor's storage from another, also while it is traced."""
    return int(tensor.untyped_storage()._cdata)


def refuse_written(
    name: str, tensor: torch.Tensor, after: torch.Tensor, storage: int, buffer: bool
) -> None:
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


def _differs(old: Any, new: Any, read: set[int]) -> bool:
    """Tell whether an attribute is another; a tensor only if its old value was read (storages)."""
    import torch

    if isinstance(old, torch.Tensor):
        return new is not old and storage_of(old) in read
    return type(old) in (bool, int, float) and type(new) is type(old) and bool(new != old)


def _constants(graph: torch.fx.GraphModule) -> Iterator[torch.Tensor]:
    import torch

    for node in graph.graph.nodes:
        value = getattr(graph, node.target, None) if node.op == "get_attr" else None
        if isinstance(value, torch.Tensor):
            yield value


def _generators() -> dict[str, str]:
    return {"Python": str(random.getstate()), "numpy": str(np.random.get_state())}
