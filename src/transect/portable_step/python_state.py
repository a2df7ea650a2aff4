"""Python values that outlive a forward pass: what a module, a loss or a metric keeps beside tensors.

Looked at are numbers, texts, containers, small arrays, iterators and generators of random numbers: in
attributes and slots, in what a function closes over, in globals that it names, its modules' too. What hides
elsewhere, as behind an extension in C, shows when a step is run twice (`verification.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import numbers
import operator
import random
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

PLAIN = (numbers.Number, str, bytes)
# Of libraries: objects in which users keep things of their own.
NAMESPACES = (types.SimpleNamespace, argparse.Namespace)
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
            self._array(value, path)
        elif isinstance(value, (list, deque, tuple, dict, set)):
            self._container(value, path, depth)
        elif isinstance(value, partial):
            self._each(
                zip(("f", "args", "keywords"), (value.func, value.args, value.keywords), strict=True), path, depth
            )
        elif isinstance(value, types.MethodType):
            self.visit(value.__self__, path, depth)
            self.visit(value.__func__, path, depth)
        elif isinstance(value, types.FunctionType):
            if not _is_library(value):
                self._function(value, path, depth)
        elif isinstance(value, type):
            self._class(value, path, depth)
        elif isinstance(value, types.GeneratorType):
            self.visit(value.gi_frame and dict(value.gi_frame.f_locals), path, depth + 1)
        elif isinstance(value, Iterator) and _is_library(type(value)):
            # How far it is: what is left, or `count(3)`.
            self.values[path] = operator.length_hint(value, -1), repr(value)
        elif isinstance(value, (torch.nn.Module, *NAMESPACES)) or not _is_library(type(value)):
            self._object(value, path, depth)

    def _each(self, items: Iterable[tuple[str, Any]], path: str, depth: int) -> None:
        for name, value in items:
            self.visit(value, f"{path}.{name}".lstrip("."), depth + 1)

    def _array(self, value: np.ndarray, path: str) -> None:
        if value.nbytes <= MAX_BYTES and value.dtype != object:
            before = value.copy()
            self.values[path] = (value.shape, value.tobytes())
            if value.flags.writeable:
                self._undo.append(lambda: np.copyto(value, before))

    def _container(self, value: Any, path: str, depth: int) -> None:
        if len(value) > MAX_LENGTH:
            return
        if isinstance(value, set):
            before = frozenset(value)
            self.values[path] = before
            self._undo.append(partial(_refill, value, before, value.update))
        elif isinstance(value, dict):
            pairs = dict(value)
            self._undo.append(partial(_refill, value, pairs, value.update))
            for number, (key, one) in enumerate(pairs.items()):
                # What the user's own classes say of themselves may fail, or be different each time.
                name = repr(key) if isinstance(key, PLAIN) else f"{type(key).__name__} {number}"
                self.visit(one, f"{path}[{name}]", depth + 1)
        else:
            items = list(value)
            if not isinstance(value, tuple):
                self._undo.append(partial(_refill, value, items, value.extend))
            for number, one in enumerate(items):
                self.visit(one, f"{path}[{number}]", depth + 1)

    def _function(self, value: Any, path: str, depth: int) -> None:
        code = value.__code__
        named = _names(code)
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=False):
            try:
                held = cell.cell_contents
            except ValueError:
                continue
            if isinstance(held, PLAIN):
                self._undo.append(partial(setattr, cell, "cell_contents", held))
            self.visit(held, name, depth + 1)
        spaces = [("", value.__globals__)]
        for name in named & value.__globals__.keys():
            held = value.__globals__[name]
            # Of a module, such as one with settings, what the function may ask it for.
            if isinstance(held, types.ModuleType) and held.__name__.partition(".")[0] not in LIBRARIES:
                spaces.append((f"{name}.", vars(held)))
        for place, space in spaces:
            for name in named & space.keys():
                held = space[name]
                if isinstance(held, PLAIN):
                    self._undo.append(partial(space.__setitem__, name, held))
                self.visit(held, f"{place}{name}", depth + 1)
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
        # Not by `getattr`: a class may have an answer to any name.
        attributes = None
        with contextlib.suppress(AttributeError):
            attributes = object.__getattribute__(value, "__dict__")
        if isinstance(attributes, dict):
            before = dict(attributes)
            self._undo.append(partial(_refill, attributes, before, attributes.update))
            self._each(((k, v) for k, v in before.items() if k not in TORCHS_OWN), path, depth)
        for owner in type(value).__mro__:
            if "__slots__" in vars(owner):
                self._slots(value, owner, path, depth)
        self._class(type(value), path, depth)

    def _slots(self, value: Any, owner: type, path: str, depth: int) -> None:
        for name, slot in vars(owner).items():
            if not isinstance(slot, types.MemberDescriptorType):
                continue
            try:
                held = slot.__get__(value)
            except AttributeError:
                continue
            self._undo.append(partial(slot.__set__, value, held))
            self._each([(name, held)], path, depth)


def _refill(container: Any, before: Any, fill: Callable[[Any], None]) -> None:
    """Give a container what was in it, unless it is still there."""
    now, then = ([*one.keys(), *one.values()] if isinstance(one, dict) else list(one) for one in (container, before))
    if len(now) != len(then) or any(a is not b for a, b in zip(now, then, strict=True)):
        container.clear()
        fill(before)


def _put_back(owner: type, name: str, value: Any) -> None:
    """Set a class's attribute, unless it is still there: members of an enumeration cannot be set."""
    if vars(owner).get(name) is not value:
        setattr(owner, name, value)


def _is_library(value: Any) -> bool:
    return str(getattr(value, "__module__", None)).partition(".")[0] in LIBRARIES


def _names(code: types.CodeType) -> set[str]:
    """Return the names that a function asks for, and functions inside of it."""
    inner = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


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
