"""Arrays that count the operations which numpy really executes on them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

# One operation for each number that comes out.
_ARITHMETIC = {"add", "subtract", "multiply", "divide", "square", "sqrt", "exp", "log", "maximum"}
# Signs and masks.
_FREE = {"absolute", "negative", "greater", "greater_equal", "equal"}
# They move numbers.
_MOVES = {
    "pad",
    "sliding_window_view",
    "where",
    "take_along_axis",
    "broadcast_to",
    "zeros_like",
    "concatenate",
    "split",
}


class Counted(np.ndarray):
    """Counts into `operations` what any of them takes part in; what has no rule here raises.

    A product of matrices counts 2 m n k, a sum of K numbers K (both begin at zero), a maximum of K
    K - 1.
    """

    operations = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **how: Any) -> Any:
        if "out" in how:
            how["out"] = tuple(map(_plain, how["out"]))
        result = getattr(ufunc, method)(*map(_plain, inputs), **how)
        name = ufunc.__name__
        if name == "matmul":
            Counted.operations += 2 * result.size * inputs[0].shape[-1]
        elif method == "reduce" and name == "add":
            Counted.operations += inputs[0].size
        elif method == "reduce" and name == "maximum":
            Counted.operations += inputs[0].size - np.size(result)
        elif method != "__call__" or name not in _ARITHMETIC | _FREE:
            raise TypeError(f"numpy.{name}.{method} has no count: say in {__name__} what it costs")
        elif name in _ARITHMETIC:
            Counted.operations += np.size(result)
        return _counted(result)

    def __array_function__(self, function: Any, types: Any, given: Any, how: Any) -> Any:
        if function.__name__ not in _MOVES:
            raise TypeError(f"numpy.{function.__name__} has no count: say in {__name__} its cost")
        plain = {name: _plain(value) for name, value in how.items()}
        return _counted(function(*map(_plain, given), **plain))

    def argmax(self, *given: Any, **how: Any) -> Any:
        result = _plain(self).argmax(*given, **how)
        Counted.operations += self.size - result.size
        return _counted(result)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.view(np.ndarray) if isinstance(value, Counted) else value


def _counted(value: Any) -> Any:
    if isinstance(value, list):
        return [_counted(one) for one in value]
    return value.view(Counted) if isinstance(value, np.ndarray) else value


def executed(call: Any, *given: Any) -> tuple[int, Any]:
    """Return the operations of a call whose arrays are given as `Counted`, and what it returns."""
    before = Counted.operations
    result = call(*(_counted(value) for value in given))
    return Counted.operations - before, result


def random_numbers(*shape: int) -> Counted:
    """Return standard normal numbers, the same for each shape."""
    drawn = np.random.default_rng(prod(shape)).standard_normal(shape)
    return drawn.view(Counted)
