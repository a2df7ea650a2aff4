"""Adding nodes to an ONNX graph by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx import GraphProto


class GraphWriter:
    """Appends nodes of the standard domain to a graph; a value is its name.

    The same node of the same inputs is written once: scalars are computed once for all tensors.
    Names begin with `prefix`.
    """

    def __init__(self, graph: GraphProto, prefix: str = "update") -> None:
        self.graph, self._prefix = graph, prefix
        self._made: dict[Any, str] = {}
        self._count = 0

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output and return that output's name."""
        from onnx import helper

        key = (operator, inputs, tuple(sorted(attributes.items())))
        if key not in self._made:
            name = self._new(operator)
            self.graph.node.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
            self._made[key] = name
        return self._made[key]

    def split(self, value: str, sizes: Sequence[int]) -> list[str]:
        """Cut a vector into parts of these lengths."""
        from onnx import helper

        names = [self._new("Split") for _ in sizes]
        inputs = [value, self.constant(list(sizes), "int64")]
        self.graph.node.append(helper.make_node("Split", inputs, names, name=names[0], axis=0))
        return names

    def constant(self, value: Any, dtype: str) -> str:
        """Add a constant; `dtype` is numpy's name."""
        from onnx import numpy_helper

        array = np.asarray(value, dtype=dtype)
        key = ("constant", array.tobytes(), array.shape, dtype)
        if key not in self._made:
            name = self._new("constant")
            self.graph.initializer.append(numpy_helper.from_array(array, name))
            self._made[key] = name
        return self._made[key]

    def cast(self, value: str, dtype: str) -> str:
        """Convert a value to a dtype, by numpy's name."""
        from onnx import helper

        return self.node("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def input(self, name: str, dtype: str, shape: tuple[int | str, ...]) -> str:
        """Declare an input of the graph, once."""
        if all(value.name != name for value in self.graph.input):
            self.graph.input.append(value_info(name, dtype, shape))
        return name

    def name_outputs(self, values: Mapping[str, str]) -> None:
        """Name the values of outputs (output to value), with Identity only where one has two names."""
        from onnx import helper

        made = {name for node in self.graph.node for name in node.output}
        names: dict[str, str] = {}
        for output, value in values.items():
            if value in made and value not in names:
                names[value] = output
        for node in self.graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names.get(name, name) for name in node.output]
        for output, value in values.items():
            if names.get(value) != output:
                source = names.get(value, value)
                self.graph.node.append(helper.make_node("Identity", [source], [output], name=output))

    def _new(self, operator: str) -> str:
        self._count += 1
        return f"{self._prefix}.{self._count}.{operator}"


def value_info(name: str, dtype: str, shape: tuple[int | str, ...]) -> Any:
    """Declare name, dtype (numpy's name) and shape of an input or output."""
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, list(shape))
