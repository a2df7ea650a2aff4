"""Operations and bytes of one run, counted from an ONNX graph."""

from __future__ import annotations

from math import prod
from typing import Any

__all__ = ["graph_costs"]

# One operation for each element read, as `training.costs` counts activations and pooling.
_ELEMENTWISE = {
    "Add", "AveragePool", "BatchNormalization", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu",
    "GlobalAveragePool", "LeakyRelu", "LogSoftmax", "MaxPool", "Mul", "ReduceMean", "ReduceSum", "Relu",
    "Sigmoid", "Softmax", "Sqrt", "Sub", "Tanh",
}  # fmt: skip
# They move or describe numbers and compute none.
_FREE = {
    "Cast", "Concat", "Constant", "ConstantOfShape", "Flatten", "Gather", "Identity", "Reshape",
    "Shape", "Slice", "Squeeze", "Transpose", "Unsqueeze",
}  # fmt: skip


def _shapes(graph: Any) -> dict[str, list[int]]:
    """Return the shape of every value for a batch of one: a symbolic axis counts as 1."""
    found = {i.name: list(i.dims) for i in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        axes = value.type.tensor_type.shape.dim
        found[value.name] = [axis.dim_value if axis.HasField("dim_value") else 1 for axis in axes]
    return found


def _operations(node: Any, shapes: dict[str, list[int]]) -> int | None:
    """Return the multiplications and additions of a node; None when there is no rule for it."""
    if node.op_type in _FREE:
        return 0
    if any(name not in shapes for name in (*filter(None, node.input), *node.output)):
        return None
    inputs = [shapes[name] for name in node.input if name]
    output = shapes[node.output[0]]
    # A bias adds one to each output.
    bias = prod(output) if len(inputs) > 2 else 0
    if node.op_type == "Gemm":
        turned = any(a.name == "transA" and a.i for a in node.attribute)
        depth = inputs[0][0 if turned else -1]
        return 2 * prod(output) * depth + bias
    if node.op_type == "MatMul":
        return 2 * prod(output) * inputs[0][-1]
    if node.op_type == "Conv":
        # Weights are (outputs, inputs / groups, *kernel).
        return 2 * prod(output) * prod(inputs[1][1:]) + bias
    if node.op_type in _ELEMENTWISE:
        return prod(inputs[0])
    return None


def graph_costs(graph: Any) -> dict[str, Any]:
    """Count one forward pass; `graph` is an ONNX graph after shape inference.

    `flops_per_sample`: two for each use of a weight, one for each bias and each element that an
    activation or a pooling reads. `weight_bytes`: the floating-point initialisers that nodes read.
    `end_bytes_per_sample`: inputs and outputs. `operators_without_rule`: types that have no rule
    here; their operations are missing in the count.
    """
    import onnx

    shapes = _shapes(graph)
    total, unknown = 0, set()
    for node in graph.node:
        operations = _operations(node, shapes)
        if operations is None:
            unknown.add(node.op_type)
        else:
            total += operations
    read = {name for node in graph.node for name in node.input}
    arrays = [onnx.numpy_helper.to_array(one) for one in graph.initializer if one.name in read]
    # Integers are shapes and axes.
    weights = sum(array.nbytes for array in arrays if array.dtype.kind == "f")
    ends = 0
    for value in (*graph.input, *graph.output):
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        ends += prod(shapes[value.name]) * kind.itemsize
    return {
        "flops_per_sample": total,
        "weight_bytes": weights,
        "end_bytes_per_sample": ends,
        "operators_without_rule": sorted(unknown),
    }
