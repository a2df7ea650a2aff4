"""What a forward pass changes beside buffers: a graph has no memory for it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.errors import BadInput
from transect.portable_step.python_state import PythonState

if TYPE_CHECKING:
    import torch

# What computes the loss and the metrics, by name.
Functions = Mapping[str, Any]
# Dictionaries of a module in which its tensors stand.
TENSORS = ("_parameters", "_buffers")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """What was there: Python values by owner (a part, the loss, a metric), parameters and buffers by name.

    `generators`: the states of those of random numbers that everyone shares.
    """

    python: Mapping[str, PythonState]
    tensors: Mapping[str, torch.Tensor]
    generators: Mapping[str, str]


@contextmanager
def forgetting(module: torch.nn.Module, functions: Functions) -> Iterator[Kept]:
    """Put the module's parts back afterwards, and what the functions of the loss and metrics keep.

    A trace leaves tensors without content in them.
    """
    parts = dict(module.named_modules())
    tensors = {(name, kind): dict(vars(part)[kind]) for name, part in parts.items() for kind in TENSORS}
    named = dict((*module.named_parameters(), *module.named_buffers()))
    python = python_state(module, functions)
    try:
        yield Kept(python=python, tensors=named, generators=_generators())
    finally:
        for state in python.values():
            state.restore()
        for name, part in parts.items():
            for kind in TENSORS:
                vars(part)[kind].clear()
                vars(part)[kind].update(tensors[name, kind])


def refuse_kept(module: torch.nn.Module, functions: Functions, before: Kept, graph: torch.fx.GraphModule) -> None:
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
    for owner, after in python_state(module, functions).items():
        for key, old in before.python[owner].values.items():
            if key in after.values and _differs(old, after.values[key], read):
                raise _changed(owner, key)


def refuse_changed(before: Mapping[str, PythonState], after: Mapping[str, PythonState]) -> None:
    """Raise BadInput for a value that a second step changes, makes or removes.

    What the first one makes does no harm, unless the next ones change it.
    """
    import torch

    for owner, state in after.items():
        then, now = before[owner].values, state.values
        for key in {**then, **now}:
            there = [one[key] for one in (then, now) if key in one]
            if any(isinstance(one, torch.Tensor) for one in there):
                continue
            if len(there) == 1 or _differs(there[0], there[1], set()):
                raise _changed(owner, key)


def _changed(owner: str, key: str) -> BadInput:
    return BadInput(
        f"{owner}: it changes {key} while it runs, which a graph does not remember: the number would stay "
        "what it is now. Expected a buffer of the module (register_buffer), or no change"
    )


def python_state(module: torch.nn.Module, functions: Functions) -> dict[str, PythonState]:
    """Return what parts of the module, and functions by name, keep in Python."""
    found = {}
    seen: dict[int, Any] = {}
    for name, part in module.named_modules():
        owner = f"{name or 'the module'} ({type(part).__name__})"
        found[owner] = PythonState(_seen=seen)
        found[owner].visit(part, "")
    for name, function in functions.items():
        found[name] = PythonState(_seen=seen)
        found[name].visit(function, "")
    return found


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


def _differs(old: Any, new: Any, read: set[int]) -> bool:
    """Tell whether an attribute is another; a tensor only if its old value was read (storages)."""
    import torch

    if isinstance(old, torch.Tensor):
        return new is not old and storage_of(old) in read
    return not isinstance(new, torch.Tensor) and new == new and bool(new != old)


def _constants(graph: torch.fx.GraphModule) -> Iterator[torch.Tensor]:
    import torch

    for node in graph.graph.nodes:
        value = getattr(graph, node.target, None) if node.op == "get_attr" else None
        if isinstance(value, torch.Tensor):
            yield value


def _generators() -> dict[str, str]:
    return {"Python": str(random.getstate()), "numpy": str(np.random.get_state())}
