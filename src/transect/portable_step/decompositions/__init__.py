"""How operators of ATen become ones that ONNX has: a registry, a file per kind of operator.

The step is traced below autograd, so the graph holds backward operators (`convolution_backward`)
and training forms (batch norm with batch statistics) for which the exporter has nothing, or
something for prediction only. A file of this folder says how one becomes simpler operators:

    @decomposes("aten.convolution_backward.default")
    def convolution_backward(grad, input, weight, ...):
        import torch
        ...

The function has the operator's own arguments and results, calls torch, must give the same numbers
eagerly (that is how it is tested) and must take symbolic sizes. What is not here falls to PyTorch's core ATen decompositions, except for KEPT, which the
exporter translates as they are.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["COMPOSITES", "DECOMPOSITIONS", "KEPT", "composes", "decomposes", "decomposition_table", "ours_first"]

F = TypeVar("F", bound=Callable[..., Any])

DECOMPOSITIONS: dict[str, Callable[..., Any]] = {}
# Those that stand above autograd, which takes their gradient. Of a library that is not imported there is none.
COMPOSITES: dict[str, Callable[..., Any]] = {}

# Operators that ONNX has as one node, and whose parts would be many.
KEPT: set[str] = {"aten.prod.default", "aten.prod.dim_int"}


def decomposes(*names: str) -> Callable[[F], F]:
    """Register a function as the decomposition of these operators, `aten.NAME.OVERLOAD`."""

    def register(function: F) -> F:
        for name in names:
            if name in DECOMPOSITIONS:
                raise ValueError(f"{name} is decomposed twice")
            DECOMPOSITIONS[name] = function
        return function

    return register


def composes(name: str) -> Callable[[F], F]:
    """Register a function in place of what PyTorch, or a library over it, makes this operator of."""

    def register(function: F) -> F:
        COMPOSITES[name] = function
        return function

    return register


def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """Return what make_fx takes: PyTorch's core decompositions, and ours over them."""
    import torch

    for found in pkgutil.iter_modules(__path__, f"{__name__}."):
        if not found.name.rpartition(".")[2].startswith("_"):
            importlib.import_module(found.name)
    table = {op: function for op, function in torch._decomp.core_aten_decompositions().items() if str(op) not in KEPT}
    return table | {_operator(name): function for name, function in DECOMPOSITIONS.items()}


@contextlib.contextmanager
def ours_first() -> Iterator[None]:
    """Let no decomposition that PyTorch has above autograd come before one of ours, and put in our composites."""
    import torch

    key = torch._C.DispatchKey
    changes: list[Any] = [(_operator(name), key.Autograd, None) for name in DECOMPOSITIONS]
    for name, made in COMPOSITES.items():
        if (operator := _operator(name)) is not None:
            composed = operator.has_kernel_for_dispatch_key(key.CompositeImplicitAutograd)
            changes.append((operator, key.CompositeImplicitAutograd if composed else key.Autograd, made))
    before = [(operator, key, operator.py_kernels.get(key)) for operator, key, _ in changes]
    _put_kernels(changes)
    try:
        yield
    finally:
        _put_kernels(before)


def _put_kernels(kernels: list[Any]) -> None:
    """Set each operator's kernel of a key, or take it away: None."""
    for operator, key, kernel in kernels:
        if operator.py_kernels.get(key) is not kernel:
            operator.py_kernels.pop(key, None)
            if kernel:
                operator.py_kernels[key] = kernel
            operator._dispatch_cache.clear()


def _operator(name: str) -> Any:
    """Return an operator, or None where the library that has it is not imported."""
    import torch

    operator = torch.ops
    for part in name.split("."):
        operator = getattr(operator, part, None)
    return operator
