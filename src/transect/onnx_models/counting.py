"""Operations and bytes of one run, counted from an ONNX graph."""

from __future__ import annotations

from math import prod
from typing import Any

from transect.training.operations import Windows

# Operations for each element of the largest input, as `training.operations` counts those that it knows.
_ONE_EACH = """
Add AveragePool Clip Div Elu Erf Exp Gelu LeakyRelu LogSoftmax Max Mul ReduceSum Relu Softmax Sqrt Sub Tanh
"""
_ELEMENTWISE = dict.fromkeys(_ONE_EACH.split(), 1) | {"Sigmoid": 3, "LayerNormalization": 7}
# A sum, then one division for each mean.
_MEANS = {"GlobalAveragePool", "ReduceMean"}
# They move or describe numbers and compute none; a batch norm is a factor in the weights beside it.
_MOVING = """
BatchNormalization Cast Concat Constant ConstantOfShape Equal Expand Flatten Gather Identity Not Reshape Shape
Slice Split Squeeze Transpose Unsqueeze Where
"""
_FREE = set(_MOVING.split())


def value_shapes(graph: Any) -> dict[str, list[int]]:
    """Return the shape of every value for a batch of one: a symbolic axis counts as 1.

    A value of unknown rank, or with more than one such axis, is left out: only one is the batch's.
    """
    found = {i.name: list(i.dims) for i in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        unknown = sum(not axis.HasField("dim_value") for axis in kind.shape.dim)
        if kind.HasField("shape") and unknown < 2:
            found[value.name] = [axis.dim_value if axis.HasField("dim_value") else 1 for axis in kind.shape.dim]
    return found


_STEPS = ("strides", "dilations")


def _windows(node: Any, sizes: list[int], counts: list[int], kernel: list[int]) -> list[Windows]:
    """Return the windows of a convolution or pooling along each axis of an image."""
    given = {a.name: list(a.ints) for a in node.attribute if a.ints}
    same = next((a.s.decode() for a in node.attribute if a.name == "auto_pad"), "NOTSET")
    windows = []
    for axis, (size, count, width) in enumerate(zip(sizes, counts, kernel, strict=True)):
        stride, dilation = (given.get(name, [1] * len(kernel))[axis] for name in _STEPS)
        before = given.get("pads", [0] * len(kernel))[axis]
        if same.startswith("SAME"):
            missing = max(0, (count - 1) * stride + (width - 1) * dilation + 1 - size)
            before = missing // 2 if same == "SAME_UPPER" else (missing + 1) // 2
        windows.append(Windows(size=size, kernel=width, count=count, before=before, stride=stride, dilation=dilation))
    return windows


def _operations(node: Any, shapes: dict[str, list[int]]) -> int | None:
    """Return the operations of a node, as `training.operations`; None when there is no rule for it."""
    if node.op_type in _FREE:
        return 0
    if node.op_type in _ELEMENTWISE:
        sizes = [prod(shapes[name]) for name in node.input if name in shapes]
        return _ELEMENTWISE[node.op_type] * max(sizes) if sizes else None
    if any(name not in shapes for name in (*filter(None, node.input), *node.output)):
        return None
    inputs = [shapes[name] for name in node.input if name]
    output = shapes[node.output[0]]
    if node.op_type == "Gemm":
        turned = any(a.name == "transA" and a.i for a in node.attribute)
        return 2 * prod(output) * inputs[0][0 if turned else -1]
    if node.op_type == "MatMul":
        return 2 * prod(output) * inputs[0][-1]
    if node.op_type == "Conv":
        # Weights are (outputs, inputs / groups, *kernel).
        windows = _windows(node, inputs[0][2:], output[2:], inputs[1][2:])
        return 2 * prod(output[:2]) * inputs[1][1] * prod(axis.taps for axis in windows)
    if node.op_type == "MaxPool":
        kernel = next(list(a.ints) for a in node.attribute if a.name == "kernel_shape")
        windows = _windows(node, inputs[0][2:], output[2:], kernel)
        return prod(output[:2]) * prod(axis.covered for axis in windows) - prod(output)
    if node.op_type in _MEANS:
        return prod(inputs[0]) + prod(output)
    return None


def graph_costs(graph: Any) -> dict[str, Any]:
    """Count one forward pass; `graph` is an ONNX graph after shape inference.

    `flops_per_sample`: the least that its nodes ask for, by the rules of `training.operations`.
    `weight_bytes`: the floating-point initialisers that nodes read; of a table in which rows are only
    looked up, one row.
    `end_bytes_per_sample`: inputs and outputs. `operators_without_rule`: types that have no rule
    here; their operations are missing in the count.
    """
    import onnx

    shapes = value_shapes(graph)
    total, unknown = 0, set()
    for node in graph.node:
        operations = _operations(node, shapes)
        if operations is None:
            unknown.add(node.op_type)
        else:
            total += operations
    read = {name for node in graph.node for name in node.input}
    looked_up = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    looked_up -= {
        name for node in graph.node for place, name in enumerate(node.input) if place or node.op_type != "Gather"
    }
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer if tensor.name in read}
    # Integers are shapes and axes.
    weights = sum(
        array.nbytes // (len(array) if name in looked_up and array.ndim else 1)
        for name, array in arrays.items()
        if array.dtype.kind == "f"
    )
    ends = 0
    weights_of = {tensor.name for tensor in graph.initializer}
    for value in (*graph.input, *graph.output):
        if value.name in weights_of:
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        ends += prod(shapes[value.name]) * kind.itemsize
    return {
        "flops_per_sample": total,
        "weight_bytes": weights,
        "end_bytes_per_sample": ends,
        "operators_without_rule": sorted(unknown),
    }
