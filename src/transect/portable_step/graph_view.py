"""A graph as its simplification sees it: who makes and reads what, and the shapes that are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


class GraphView:
    """A graph with what makes and reads each value, and the shapes that are known."""

    def __init__(self, graph: GraphProto) -> None:
        self.graph = graph
        self.maker = {name: node for node in graph.node for name in node.output if name}
        self.readers = Counter(_reads(graph))
        self.constants = {one.name: one for one in graph.initializer}
        self.outputs = {value.name for value in graph.output}
        self.types = {
            value.name: value.type.tensor_type
            for value in (*graph.input, *graph.value_info, *graph.output)
            if value.type.tensor_type.HasField("shape")
        }

    def shape(self, name: str) -> list[int | str] | None:
        """Return a value's axes, lengths or names, or None where one is not known."""
        if name not in self.types:
            return None
        axes = [axis.dim_param or axis.dim_value for axis in self.types[name].shape.dim]
        return axes if all(axes) else None

    def is_matrix(self, name: str) -> bool:
        """Tell whether a value is a matrix of floating point numbers."""
        from onnx import TensorProto

        kind = self.types.get(name)
        floats = (TensorProto.FLOAT, TensorProto.DOUBLE)
        return kind is not None and kind.elem_type in floats and len(kind.shape.dim) == 2

    def made_by(self, name: str, *operators: str) -> NodeProto | None:
        """Return the node that makes a value, when it is one of these operators."""
        node = self.maker.get(name)
        return node if node is not None and node.op_type in operators else None

    def position(self, node: NodeProto) -> int:
        """Return a node's place in the graph, told by its output."""
        return next(i for i, one in enumerate(self.graph.node) if one.output == node.output)

    def insert(self, position: int, nodes: Sequence[NodeProto]) -> None:
        """Put nodes before that of a position."""
        for offset, node in enumerate(nodes):
            self.graph.node.insert(position + offset, node)

    def rename(self, names: Mapping[str, str]) -> None:
        """Let readers take other values; a graph's output is left as it is."""
        for node in self.graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]

    def constant(self, value: int | Sequence[int]) -> str:
        """Add int64 numbers, or a scalar, unless they are there; return their name."""
        from onnx import numpy_helper

        array = np.array(value, np.int64)
        name = f"simplified.{'x'.join(map(str, array.reshape(-1)))}.{array.ndim}"
        if all(one.name != name for one in self.graph.initializer):
            self.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def value(self, name: str) -> np.ndarray | None:
        """Return a constant's value, or None for what is computed."""
        from onnx import numpy_helper

        found = self.constants.get(name)
        return None if found is None else numpy_helper.to_array(found)

    def add_shape(self, name: str, dtype: int, shape: Sequence[int | str]) -> None:
        """Note the shape of a new value."""
        from onnx import helper

        self.graph.value_info.append(helper.make_tensor_value_info(name, dtype, shape))
        self.types[name] = self.graph.value_info[-1].type.tensor_type


def _reads(graph: GraphProto) -> Iterator[str]:
    """Yield the inputs of all nodes, those of inner graphs too."""
    for node in graph.node:
        yield from node.input
        for one in node.attribute:
            for inner in [one.g] if one.HasField("g") else one.graphs:
                yield from _reads(inner)


def attribute(node: NodeProto, name: str, default: Any = None) -> Any:
    """Return an attribute's value."""
    from onnx import helper

    for one in node.attribute:
        if one.name == name:
            return helper.get_attribute_value(one)
    return default


def set_attributes(node: NodeProto, **values: Any) -> None:
    """Give a node attributes, in place of those of the same names."""
    from onnx import helper

    kept = [one for one in node.attribute if one.name not in values]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(k, v) for k, v in values.items())])
