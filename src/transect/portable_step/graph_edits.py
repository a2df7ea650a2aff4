"""Helpers to inspect the values of a graph and to add nodes to it, on top of onnx-ir."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx_ir as ir

# Operators that give the elements of their input another shape.
VIEWS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity")


def axes_of(value: ir.Value) -> list[int | str] | None:
    """Return a value's axes, lengths or names, or None where one is not known."""
    if value.shape is None:
        return None
    axes = [axis if isinstance(axis, int) else axis.value for axis in value.shape]
    return axes if all(axes) else None


def made_by(value: ir.Value | None, *operators: str) -> ir.Node | None:
    """Return the node that makes a value, when it is one of these operators."""
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type in operators else None


def viewed(value: ir.Value) -> ir.Value:
    """Return the tensor that a value is a view of."""
    while (node := made_by(value, *VIEWS)) is not None:
        value = node.inputs[0]
    return value


def is_read_once(value: ir.Value) -> bool:
    """Tell whether one node reads a value, and nobody outside of the graph."""
    return len(value.uses()) == 1 and not value.is_graph_output()


def numbers_of(value: ir.Value) -> np.ndarray | None:
    """Return a constant's numbers, or None for what is computed."""
    from onnx_ir.convenience import get_const_tensor

    tensor = get_const_tensor(value)
    return None if tensor is None else np.asarray(tensor.numpy())


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """Return an attribute's value."""
    return node.attributes[name].value if name in node.attributes else default


def set_attributes(node: ir.Node, **values: Any) -> None:
    """Give a node attributes, in place of those of the same names."""
    from onnx_ir.convenience import convert_attribute

    node.attributes.update({name: convert_attribute(name, value) for name, value in values.items()})


def constant(graph: ir.Graph, numbers: Any, dtype: type[np.generic] = np.int64) -> ir.Value:
    """Return a small constant of the graph, which is added unless it is there."""
    import onnx_ir

    array = np.array(numbers, dtype)
    name = f"simplified.{'x'.join(map(str, array.reshape(-1)))}.{array.ndim}.{array.dtype}"
    if name not in graph.initializers:
        tensor = onnx_ir.tensor(array, name=name)
        graph.register_initializer(onnx_ir.val(name, const_value=tensor))
    return graph.initializers[name]


def put_before(node: ir.Node, operator: str, *inputs: ir.Value, **attributes: Any) -> ir.Value:
    """Write a node before another; return its result."""
    import onnx_ir

    added = onnx_ir.node(operator, inputs, attributes)
    node.graph.insert_before(node, added)
    return added.outputs[0]


def rewrite(node: ir.Node, operator: str, *inputs: ir.Value, **attributes: Any) -> None:
    """Make a node another operator that gives the same result."""
    node.op_type = operator
    node.resize_inputs(len(inputs))
    for place, value in enumerate(inputs):
        node.replace_input_with(place, value)
    node.attributes.clear()
    set_attributes(node, **attributes)
