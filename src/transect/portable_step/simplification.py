"""Fewer nodes for the same numbers, where ONNX Runtime does not see it itself.

Traces write a weight's gradient as a product with transposed copies, and sums that keep axes which
a reshape then drops.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from transect.portable_step.activations import mask_by_product, share_gelu
from transect.portable_step.fusion import add_bias, join_padded, scatter_flat, sum_by_product, view_once
from transect.portable_step.graph_view import GraphView, attribute, set_attributes

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

SHORT = 16
REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")


def simplify(graph: GraphProto) -> None:
    """Change a graph in place, by what its `value_info` says of shapes; nodes left over stay."""
    for change in (
        _share,
        _undo_transposes,
        _multiply_transposed,
        _reduce_at_once,
        _pool_once,
        scatter_flat,
        join_padded,
        mask_by_product,
        add_bias,
        sum_by_product,
        view_once,
        share_gelu,
        _share,
    ):
        change(GraphView(graph))


def _share(graph: GraphView) -> None:
    """Compute once what is computed twice. Outputs keep the nodes that make them."""
    seen: dict[bytes, NodeProto] = {}
    names = _equal_constants(graph)
    for node in graph.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        if any(one.HasField("g") or one.graphs for one in node.attribute):
            continue
        key = type(node)(op_type=node.op_type, input=node.input)
        key.attribute.extend(sorted(node.attribute, key=lambda one: one.name))
        first = seen.setdefault(key.SerializeToString(deterministic=True), node)
        if first is not node and not set(node.output) & graph.outputs:
            names |= dict(zip(node.output, first.output, strict=False))
    graph.rename(names)


def _equal_constants(graph: GraphView) -> dict[str, str]:
    """Return for short constants the first of the same numbers."""
    first: dict[bytes, str] = {}
    names: dict[str, str] = {}
    for one in graph.graph.initializer:
        if math.prod(one.dims) <= SHORT and one.name not in graph.outputs:
            key = type(one)()
            key.CopyFrom(one)
            for part in ("name", "doc_string", "metadata_props"):
                key.ClearField(part)
            names[one.name] = first.setdefault(key.SerializeToString(deterministic=True), one.name)
    return {name: other for name, other in names.items() if name != other}


def _undo_transposes(graph: GraphView) -> None:
    """Let readers of a transposed transpose read what was transposed first."""
    names = {}
    for node in graph.graph.node:
        if node.op_type != "Transpose":
            continue
        before = graph.made_by(node.input[0], "Transpose")
        if before is not None:
            first, second = attribute(before, "perm"), attribute(node, "perm")
            if [first[axis] for axis in second] == list(range(len(first))):
                names[node.output[0]] = before.input[0]
    graph.rename({name: value for name, value in names.items() if name not in graph.outputs})


def _multiply_transposed(graph: GraphView) -> None:
    """Write products of transposed matrices as Gemm, which takes them as they lie."""
    for node in graph.graph.node:
        if node.op_type == "MatMul":
            if not all(graph.is_matrix(name) for name in node.input):
                continue
            if not any(_transposed(graph, name) for name in node.input):
                continue
            node.op_type = "Gemm"
        if node.op_type == "Gemm":
            for place, flag in enumerate(("transA", "transB")):
                source = _transposed(graph, node.input[place])
                if source:
                    node.input[place] = source
                    set_attributes(node, **{flag: 1 - attribute(node, flag, 0)})


def _transposed(graph: GraphView, name: str) -> str:
    """Return the matrix of which a value is the transpose, or nothing."""
    node = graph.made_by(name, "Transpose")
    if node is None or list(attribute(node, "perm")) != [1, 0]:
        return ""
    return str(node.input[0])


def _reduce_at_once(graph: GraphView) -> None:
    """Let a reduction drop its axes itself, where a reshape or squeeze behind it does no more."""
    for node in graph.graph.node:
        if node.op_type not in ("Reshape", "Squeeze"):
            continue
        reduction = graph.made_by(node.input[0], *REDUCTIONS)
        if reduction is None or graph.readers[node.input[0]] > 1 or node.input[0] in graph.outputs:
            continue
        before, after = graph.shape(reduction.input[0]), graph.shape(node.output[0])
        if before is None or after is None or not attribute(reduction, "keepdims", 1):
            continue
        axes = _axes(graph, reduction, len(before))
        if axes is not None and [n for i, n in enumerate(before) if i not in axes] == list(after):
            set_attributes(reduction, keepdims=0)
            reduction.output[0], node.input[0] = node.output[0], node.output[0]
            node.op_type = "Identity"
            del node.input[1:], node.attribute[:]
            node.output[0] = f"{node.output[0]}.again"


def _pool_once(graph: GraphView) -> None:
    """Find a maximum's place in its plane by a remainder.

    MaxPool tells places in the whole tensor, from which the exporter subtracts the place where the
    plane begins: the first element of a pooling over windows of one.
    """
    for node in graph.graph.node:
        if node.op_type != "Sub":
            continue
        pool, first = graph.made_by(node.input[0], "MaxPool"), graph.made_by(node.input[1], "Slice")
        begins = first and graph.made_by(first.input[0], "MaxPool")
        if pool is None or not begins or set(attribute(begins, "kernel_shape")) != {1}:
            continue
        shape = graph.shape(pool.input[0]) if pool.input[0] == begins.input[0] else None
        plane = [size for size in shape[2:] if isinstance(size, int)] if shape else []
        if shape and len(plane) == len(shape) - 2:
            node.op_type = "Mod"
            node.input[1] = graph.constant(math.prod(plane))


def _axes(graph: GraphView, node: NodeProto, rank: int) -> set[int] | None:
    """Return the axes of a reduction, or None where they are not constants."""
    from onnx import numpy_helper

    if len(node.input) < 2:
        given = attribute(node, "axes", list(range(rank)))
    else:
        constants = [one for one in graph.graph.initializer if one.name == node.input[1]]
        if not constants:
            return None
        given = numpy_helper.to_array(constants[0]).tolist() or list(range(rank))
    return {axis % rank for axis in given} if rank else set()
