"""Python values that outlive a forward pass: what a module, a loss or a metric keeps beside tensors.

Looked at are numbers, texts, containers, small arrays and generators of random numbers, in attributes and in what a
function closes over. What hides elsewhere shows when a step is run twice (`verification.py`).
"""

from __future__ import annotations

import numbers
import random
import sys
import types
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

PLAIN = (numbers.Number, str, bytes)
# Deeper, longer and larger things are data, not counters.
DEEPEST, MAX_LENGTH, MAX_COUNT, MAX_BYTES = 6, 1000, 20_000, 1 << 16
# Of a module: tensors and parts, which are looked at by name, and hooks.
TORCHS_OWN = ("_parameters", "_buffers", "_modules")
LIBRARIES = {*sys.stdlib_module_names, "torch", "numpy", "transect"} - {"__main__"}


@dataclass(slots=True)
class PythonState:
    """`values` by where they stand: plain ones, and tensors themselves."""

    values: dict[str, Any] = field(default_factory=dict)
    _undo: list[Callable[[], None]] = field(default_factory=list)
    # Held, so that no other object gets the id of one that was seen.
    _seen: dict[int, Any] = field(default_factory=dict)
    _visits: int = 0

    def restore(self) -> None:
        """Put back what stood there."""
        for undo in reversed(self._undo):
            undo()

    def visit(self, value: Any, path: str, depth: int = 0) -> None:
        """Note a value, and what is inside of it."""
        import torch

        if isinstance(value, (*PLAIN, torch.Tensor)):
            self.values[path] = value
            return
        self._visits += 1
        if depth > DEEPEST or self._visits > MAX_COUNT or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if (state := _generator_state(value)) is not None:
            self.values[path], undo = state
            self._undo.append(undo)
        elif isinstance(value, np.ndarray):
            if value.nbytes <= MAX_BYTES and value.dtype != object:
                self.values[path] = (value.shape, value.tobytes())
                if value.flags.writeable:
                    self._undo.append(partial(np.copyto, value, value.copy()))
        elif isinstance(value, (list, deque, tuple, dict)):
            if len(value) <= MAX_LENGTH:
                self._container(value, path, depth)
        elif isinstance(value, types.MethodType):
            self.visit(value.__self__, path, depth)
        elif isinstance(value, types.FunctionType):
            if not _is_library(value):
                self._closure(value, depth)
        elif isinstance(value, (torch.nn.Module, types.SimpleNamespace)) or not _is_library(type(value)):
            self._object(value, path, depth)

    def _container(self, value: Any, path: str, depth: int) -> None:
        if isinstance(value, dict):
            before = dict(value)
            self._undo.append(partial(_refill, value, before, value.update))
            items = [(repr(k) if isinstance(k, PLAIN) else type(k).__name__, one) for k, one in before.items()]
        else:
            items = [(str(number), one) for number, one in enumerate(value)]
            if not isinstance(value, tuple):
                self._undo.append(partial(_refill, value, list(value), value.extend))
        for name, one in items:
            self.visit(one, f"{path}[{name}]", depth + 1)

    def _closure(self, value: types.FunctionType, depth: int) -> None:
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
            try:
                held = cell.cell_contents
            except ValueError:
                continue
            if isinstance(held, PLAIN):
                self._undo.append(partial(setattr, cell, "cell_contents", held))
            self.visit(held, name, depth + 1)

    def _object(self, value: Any, path: str, depth: int) -> None:
        attributes = getattr(value, "__dict__", None)
        slots = [name for owner in type(value).__mro__ for name in getattr(owner, "__slots__", ())]
        if isinstance(attributes, dict):
            before = dict(attributes)
            self._undo.append(partial(_refill, attributes, before, attributes.update))
        else:
            before = {name: getattr(value, name) for name in slots if hasattr(value, name)}
            self._undo += [partial(setattr, value, name, one) for name, one in before.items()]
        for name, one in before.items():
            if name not in TORCHS_OWN:
                self.visit(one, f"{path}.{name}".lstrip("."), depth + 1)


def _refill(container: Any, before: Any, fill: Callable[[Any], None]) -> None:
    """Give a container what was in it, unless it is still there."""
    now, then = ([*one.keys(), *one.values()] if isinstance(one, dict) else list(one) for one in (container, before))
    if len(now) != len(then) or any(a is not b for a, b in zip(now, then, strict=True)):
        container.clear()
        fill(before)


def _is_library(value: Any) -> bool:
    return str(getattr(value, "__module__", None)).partition(".")[0] in LIBRARIES


def _generator_state(value: Any) -> tuple[str, Callable[[], None]] | None:
    """Return the state of a generator of random numbers and what puts it back; None for others."""
    import torch

    if isinstance(value, np.random.Generator):
        state = value.bit_generator.state
        return str(state), partial(setattr, value.bit_generator, "state", state)
    if isinstance(value, np.random.RandomState):
        states = value.get_state()
        return str(states), partial(value.set_state, states)
    if isinstance(value, random.Random):
        kept = value.getstate()
        return str(kept), partial(value.setstate, kept)
    if isinstance(value, torch.Generator):
        tensor = value.get_state()
        return str(tensor.tolist()), partial(value.set_state, tensor)
    return None
