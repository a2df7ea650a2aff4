"""What the functions that go backwards through numpy's layers hold."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

import numpy as np


def _owner(array: np.ndarray) -> np.ndarray:
    """Return the array whose memory a view shows; windows over an array stand on an object of their own."""
    found: Any = array
    owner = array
    while found is not None:
        if isinstance(found, np.ndarray):
            owner = found
        found = getattr(found, "base", None)
    return owner


def _address(array: np.ndarray) -> int:
    return int(_owner(array).__array_interface__["data"][0])


def kept_arrays(back: Any, weights: Iterable[np.ndarray]) -> dict[int, int]:
    """Return address and bytes of each array that a function and those that it calls hold.

    Those of `weights` are left out: they are there anyway.
    """
    own = {_address(array) for array in weights}
    found: dict[int, int] = {}
    todo: list[Any] = [back]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            if one.nbytes and _address(one) not in own:
                found[_address(one)] = _owner(one).nbytes
        elif isinstance(one, FunctionType):
            todo += [cell.cell_contents for cell in one.__closure__ or ()]
        elif isinstance(one, list | tuple):
            todo += one
    return found
