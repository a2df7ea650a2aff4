"""Fewer nodes for the same numbers, where ONNX Runtime does not see it itself.

Traces write a weight's gradient as a product with transposed copies, and sums that keep axes which
a reshape then drops. What is computed twice or for nothing falls away by the passes of onnx-ir.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from transect.portable_step.activations import mask_by_product, share_gelu
from transect.portable_step.fusion import add_bias, join_padded, scatter_flat, sum_by_product, view_once
from transect.portable_step.graph_edits import (
    attribute,
    axes_of,
    constant,
    is_read_once,
    made_by,
    numbers_of,
    rewrite,
    set_attributes,
)

if TYPE_CHECKING:
    import onnx_ir as ir

REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")


def simplify(model: ir.Model) -> None:
    """Change a model in place, by what is known of its values' shapes."""
    from onnx_ir.passes import Sequential, common

    tidy = Sequential(
        common.DeduplicateInitializersPass(),
        common.CommonSubexpressionEliminationPass(),
        common.IdentityEliminationPass(),
        common.RemoveUnusedNodesPass(),
    )
    tidy(model)
    for change in (
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
    ):
        change(model.graph)
        tidy(model)


def _undo_transposes(graph: ir.Graph) -> None:
    """Let readers of a transposed transpose read what was transposed first."""
    for node in graph:
        before = made_by(node.inputs[0], "Transpose") if node.op_type == "Transpose" else None
        if before is not None:
            first, second = attribute(before, "perm"), attribute(node, "perm")
            if [first[axis] for axis in second] == list(range(len(first))):
                rewrite(node, "Identity", before.inputs[0])


def _multiply_transposed(graph: ir.Graph) -> None:
    """Write products of transposed matrices as Gemm, which takes them as they lie."""
    for node in graph:
        if node.op_type == "MatMul" and all(map(_is_matrix, node.inputs)) and any(map(_transposed, node.inputs)):
            rewrite(node, "Gemm", *node.inputs)
        if node.op_type == "Gemm":
            for place, flag in enumerate(("transA", "transB")):
                source = _transposed(node.inputs[place])
                if source is not None:
                    node.replace_input_with(place, source)
                    set_attributes(node, **{flag: 1 - attribute(node, flag, 0)})


def _is_matrix(value: ir.Value) -> bool:
    floats = value.dtype is not None and value.dtype.name in ("FLOAT", "DOUBLE")
    return floats and value.shape is not None and len(value.shape) == 2


def _transposed(value: ir.Value) -> ir.Value | None:
    """Return the matrix of which a value is the transpose, or None."""
    node = made_by(value, "Transpose")
    return node.inputs[0] if node is not None and list(attribute(node, "perm")) == [1, 0] else None


def _reduce_at_once(graph: ir.Graph) -> None:
    """Let a reduction drop its axes itself, where a reshape or squeeze behind it does no more."""
    for node in graph:
        reduction = made_by(node.inputs[0], *REDUCTIONS) if node.op_type in ("Reshape", "Squeeze") else None
        if reduction is None or not is_read_once(node.inputs[0]) or not attribute(reduction, "keepdims", 1):
            continue
        before, after = axes_of(reduction.inputs[0]), axes_of(node.outputs[0])
        axes = _reduced_axes(reduction, len(before)) if before is not None and after is not None else None
        if axes is not None and [n for i, n in enumerate(before or ()) if i not in axes] == after:
            set_attributes(reduction, keepdims=0)
            reduction.outputs[0].shape = node.outputs[0].shape
            rewrite(node, "Identity", reduction.outputs[0])


def _reduced_axes(node: ir.Node, rank: int) -> set[int] | None:
    """Return the axes of a reduction, or None where they are not constants."""
    if len(node.inputs) < 2 or node.inputs[1] is None:
        given = attribute(node, "axes", list(range(rank)))
    else:
        found = numbers_of(node.inputs[1])
        if found is None:
            return None
        given = found.tolist() or list(range(rank))
    return {axis % rank for axis in given} if rank else set()


def _pool_once(graph: ir.Graph) -> None:
    """Find a maximum's place in its plane by a remainder.

    MaxPool tells places in the whole tensor, from which the exporter subtracts the place where the
    plane begins: the first element of a pooling over windows of one.
    """
    for node in graph:
        if node.op_type != "Sub":
            continue
        pool, first = made_by(node.inputs[0], "MaxPool"), made_by(node.inputs[1], "Slice")
        begins = first and made_by(first.inputs[0], "MaxPool")
        if pool is None or not begins or set(attribute(begins, "kernel_shape")) != {1}:
            continue
        shape = axes_of(pool.inputs[0]) if pool.inputs[0] is begins.inputs[0] else None
        plane = [size for size in shape[2:] if isinstance(size, int)] if shape else []
        if shape and len(plane) == len(shape) - 2:
            rewrite(node, "Mod", node.inputs[0], constant(graph, math.prod(plane)))
