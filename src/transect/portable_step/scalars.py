"""Numbers beside tensors in a traced graph, in full precision.

The exporter computes with the lengths of axes in float32, and rounds a Python number to float32
before it meets a tensor of float64: gradients in float64 would be right to eight digits only.
"""

from __future__ import annotations

import builtins
import contextlib
import math
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch.fx import GraphModule, Node

# Arithmetic of Python on lengths of axes, and the same on tensors.
ARITHMETIC = {
    "truediv": "div.Tensor",
    "mul": "mul.Tensor",
    "add": "add.Tensor",
    "sub": "sub.Tensor",
    "pow": "pow.Tensor_Tensor",
    "neg": "neg.default",
    "abs": "abs.default",
    "_sym_sqrt": "sqrt.default",
}
# Forms of operators that take a number, and the forms that take a tensor in its place.
OVERLOADS = {"Tensor": "Tensor", "Tensor_Tensor": "Tensor_Tensor", "Scalar": "Tensor", "Tensor_Scalar": "Tensor_Tensor"}
# Operators that fill a shape, and the place of the number among their arguments.
FILLED = {"aten.full.default": 1, "aten.full_like.default": 1, "aten.scalar_tensor.default": 0}


@contextlib.contextmanager
def symbolic_functions() -> Iterator[None]:
    """Let `len` of a tensor and `math.sqrt` of a length be what they are for any length, not numbers of the example."""
    import torch

    plain_len, plain_sqrt = len, math.sqrt

    def symbolic_len(value: Any) -> Any:
        return value.shape[0] if isinstance(value, torch.Tensor) and value.dim() else plain_len(value)

    def symbolic_sqrt(value: Any) -> Any:
        return torch._sym_sqrt(value) if isinstance(value, (torch.SymInt, torch.SymFloat)) else plain_sqrt(value)

    builtins.len, math.sqrt = symbolic_len, symbolic_sqrt
    try:
        yield
    finally:
        builtins.len, math.sqrt = plain_len, plain_sqrt


def keep_precision(module: GraphModule) -> None:
    """Compute with lengths in float64, and give numbers beside float64 tensors as float64 tensors."""
    made: dict[Node, Node] = {}
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        if _is_float(node) and getattr(node.target, "__name__", "") in ARITHMETIC:
            made[node] = _as_tensor(module, node, made)
        elif getattr(node.target, "_overloadname", "") in OVERLOADS:
            _apply_factor(module, node)
            _widen(module, node, made)
        elif str(node.target) in FILLED:
            _fill(module, node)
    module.graph.eliminate_dead_code()
    module.recompile()


def _is_float(value: Any) -> bool:
    import torch

    return isinstance(getattr(value, "meta", {}).get("val"), torch.SymFloat)


def _as_tensor(module: GraphModule, node: Node, made: dict[Node, Node]) -> Node:
    """Write Python's arithmetic once more, on scalars of float64, behind the node."""
    import torch

    aten = torch.ops.aten

    def operand(value: Any) -> Node:
        if value in made:
            return made[value]
        if isinstance(value, float):
            return _constant(module, value)
        kind = {"dtype": torch.float64}
        return module.graph.call_function(aten.scalar_tensor.default, (value,), kind)

    with module.graph.inserting_after(node):
        result = module.graph.call_function(operator.attrgetter(ARITHMETIC[node.target.__name__])(aten))
    with module.graph.inserting_before(result):
        result.args = tuple(operand(argument) for argument in node.args)
    return result


def _apply_factor(module: GraphModule, node: Node) -> None:
    """Multiply by the `alpha` of a sum or difference in float64 before it is taken."""
    import torch

    alpha = node.kwargs.get("alpha", 1)
    if not _is_rounded(alpha) or node.meta["val"].dtype != torch.float64:
        return
    with module.graph.inserting_before(node):
        constant = _constant(module, alpha)
        scaled = module.graph.call_function(torch.ops.aten.mul.Tensor, (node.args[1], constant))
    scaled.meta["val"] = node.args[1].meta["val"]
    node.args, node.kwargs = (node.args[0], scaled), {}


def _widen(module: GraphModule, node: Node, made: dict[Node, Node]) -> None:
    """Replace numbers among an operator's arguments by tensors of the other arguments' dtype."""
    import torch

    aten = torch.ops.aten
    values = [getattr(argument, "meta", {}).get("val") for argument in node.args]
    dtypes = {value.dtype for value in values if isinstance(value, torch.Tensor)}
    if len(dtypes) != 1 or len(node.args) != 2:
        return
    (dtype,) = dtypes
    arguments = []
    with module.graph.inserting_before(node):
        for argument in node.args:
            if argument in made:
                argument = module.graph.call_function(aten._to_copy.default, (made[argument],), {"dtype": dtype})
            elif _is_rounded(argument) and dtype == torch.float64:
                argument = _constant(module, argument)
            arguments.append(argument)
    if tuple(arguments) != node.args:
        packet = node.target.overloadpacket
        node.target = getattr(packet, OVERLOADS[node.target._overloadname])
        node.args = tuple(arguments)


def _fill(module: GraphModule, node: Node) -> None:
    """Replace a number that float32 cannot hold, spread over a shape of float64."""
    import torch

    value, number = node.meta["val"], node.args[FILLED[str(node.target)]]
    if value.dtype != torch.float64 or not _is_rounded(number):
        return
    with module.graph.inserting_before(node):
        constant = _constant(module, number)
        # The shape is that of a tensor filled with zeros.
        arguments = list(node.args)
        arguments[FILLED[str(node.target)]] = 0.0
        blank = module.graph.call_function(node.target, tuple(arguments), node.kwargs)
        filled = module.graph.call_function(torch.ops.aten.add.Tensor, (blank, constant))
    node.replace_all_uses_with(filled if value.ndim else constant)


def _is_rounded(number: Any) -> bool:
    """Tell whether float32 cannot hold a number."""
    return isinstance(number, float) and float(np.float32(number)) != number


def _constant(module: GraphModule, number: Any) -> Node:
    import torch

    name = f"_number_{sum(1 for _ in module.buffers())}"
    module.register_buffer(name, torch.tensor(number, dtype=torch.float64))
    return module.graph.get_attr(name)
