"""Python values that outlive a forward pass: what a module, a loss or a metric keeps beside tensors.

Looked at are numbers, texts, containers, small arrays and generators of random numbers: in attributes, in
what a function closes over, in globals that it names. What hides elsewhere, as in a suspended Python
generator, shows when a step is run twice (`verification.py`).
"""

from __future__ import annotations

import random
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

__all__ = ["TORCHS_OWN", "PythonState"]

PLAIN = (bool, int, float, complex, str, bytes)
# Deeper, longer and larger things are data, not counters.
DEEPEST, LONGEST, MOST, LARGEST_BYTES = 6, 1000, 20_000, 1 << 16
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
        if depth > DEEPEST or len(self.values) > MOST or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if (state := _generator_state(value)) is not None:
            self.values[path], undo = state
            self._undo.append(undo)
        elif isinstance(value, np.ndarray):
            self._array(value, path)
        elif isinstance(value, (list, deque, tuple, dict, set)):
            self._container(value, path, depth)
        elif isinstance(value, partial):
            self._each(
                zip(
                    ("f", "args", "keywords"), (value.func, value.args, value.keywords), strict=True
                ),
                path,
                depth,
            )
        elif isinstance(value, types.MethodType):
            self.visit(value.__self__, path, depth)
            self.visit(value.__func__, path, depth)
        elif isinstance(value, types.FunctionType):
            if not _is_library(value):
                self._function(value, path, depth)
        elif isinstance(value, type):
            self._class(value, path, depth)
        elif type(value).__module__ == "itertools":
            # `count(3)`: how far it is.
            self.values[path] = repr(value)
        elif hasattr(value, "__dict__") and (
            isinstance(value, torch.nn.Module) or not _is_library(type(value))
        ):
            self._object(value, path, depth)

    def _each(self, items: Iterable[tuple[str, Any]], path: str, depth: int) -> None:
        for name, value in items:
            self.visit(value, f"{path}.{name}".lstrip("."), depth + 1)

    def _array(self, value: np.ndarray, path: str) -> None:
        if value.nbytes <= LARGEST_BYTES and value.dtype != object:
            before = value.copy()
            self.values[path] = (value.shape, value.tobytes())
            if value.flags.writeable:
                self._undo.append(lambda: np.copyto(value, before))

    def _container(self, value: Any, path: str, depth: int) -> None:
        if len(value) > LONGEST:
            return
        if isinstance(value, set):
            before = frozenset(value)
            self.values[path] = before
            self._undo.append(partial(_refill, value, before, value.update))
        elif isinstance(value, dict):
            pairs = dict(value)
            self._undo.append(partial(_refill, value, pairs, value.update))
            for key, one in pairs.items():
                self.visit(one, f"{path}[{key!r}]", depth + 1)
        else:
            items = list(value)
            if not isinstance(value, tuple):
                self._undo.append(partial(_refill, value, items, value.extend))
            for number, one in enumerate(items):
                self.visit(one, f"{path}[{number}]", depth + 1)

    def _function(self, value: Any, path: str, depth: int) -> None:
        code = value.__code__
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=False):
            try:
                held = cell.cell_contents
            except ValueError:
                continue
            if isinstance(held, PLAIN):
                self._undo.append(partial(setattr, cell, "cell_contents", held))
            self.visit(held, name, depth + 1)
        for name in code.co_names:
            if name in value.__globals__:
                held = value.__globals__[name]
                if isinstance(held, PLAIN):
                    self._undo.append(partial(value.__globals__.__setitem__, name, held))
                self.visit(held, name, depth + 1)
        self.visit(value.__defaults__ or (), f"{path}.defaults", depth)
        self.visit(value.__kwdefaults__ or {}, f"{path}.defaults", depth)

    def _class(self, value: type, path: str, depth: int) -> None:
        for one in value.__mro__:
            if _is_library(one):
                continue
            for name, held in vars(one).items():
                if name.startswith("__") and name != "__call__":
                    continue
                if isinstance(held, PLAIN):
                    self._undo.append(partial(_put_back, one, name, held))
                self.visit(held, f"{one.__name__}.{name}", depth + 1)

    def _object(self, value: Any, path: str, depth: int) -> None:
        attributes = vars(value)
        before = dict(attributes)
        self._undo.append(partial(_refill, attributes, before, attributes.update))
        self._each(((k, v) for k, v in before.items() if k not in TORCHS_OWN), path, depth)
        self._class(type(value), path, depth)


def _refill(container: Any, before: Any, fill: Callable[[Any], None]) -> None:
    """Give a container what was in it, unless it is still there."""
    now, then = (
        [*one.keys(), *one.values()] if isinstance(one, dict) else list(one)
        for one in (container, before)
    )  # fmt: skip
    if len(now) != len(then) or any(a is not b for a, b in zip(now, then, strict=True)):
        container.clear()
        fill(before)


def _put_back(owner: type, name: str, value: Any) -> None:
    """Set a class's attribute, unless it is still there: members of an enumeration cannot be set."""
    if vars(owner).get(name) is not value:
        setattr(owner, name, value)


def _is_library(value: Any) -> bool:
    return (getattr(value, "__module__", None) or "").partition(".")[0] in LIBRARIES


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
