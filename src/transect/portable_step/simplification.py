"""Fewer nodes for the same numbers, where ONNX Runtime does not see it itself.

Traces write a weight's gradient as a product with transposed copies, and sums that keep axes which
a reshape then drops. What is computed twice or for nothing falls away by the passes of onnx-ir.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from transect.portable_step.fusion import add_bias, join_padded, scatter_flat, sum_by_product, view_once
from transect.portable_step.graph_edits import (
    VIEWS,
    attribute,
    axes_of,
    constant,
    is_read_once,
    made_by,
    numbers_of,
    put_before,
    rewrite,
    set_attributes,
)

if TYPE_CHECKING:
    import onnx_ir as ir
    from onnx import GraphProto, ModelProto

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


SPREADING = ("Conv", "ConvTranspose", "Gemm", "MatMul")
BINARY = ("Add", "Sub", "Mul", "Div")
# Operators whose results are as finite as the inputs at the same places.
LOCAL = (*VIEWS, *BINARY, "Transpose", "Expand", "BatchNormalization", "Relu", "Where", "ScatterElements")
# Elements of a sample from which on a node more is made up for.
MANY = 512


def mask_by_product(graph: ir.Graph) -> None:
    """Multiply by what ReLU let through, where Where chooses: it takes 0.6 times as long.

    Only where no infinity can stand at a single place, for zero times that is no number.
    """
    for node in graph:
        less = made_by(node.inputs[0], "LessOrEqual") if node.op_type == "Where" else None
        zeros = [numbers_of(value) for value in (node.inputs[1], less.inputs[1])] if less else [None]
        if not less or any(zero is None or zero.size > 1 or zero.any() for zero in zeros):
            continue
        shape, kept = axes_of(node.outputs[0]), less.inputs[0]
        if (
            made_by(kept, "Relu") is None
            or shape is None
            or math.prod(axis for axis in shape[1:] if isinstance(axis, int)) < MANY
            or kept.dtype is None
            or kept.dtype.name != "FLOAT"
            or not _is_tame(node.inputs[2])
        ):
            continue
        kinds = type(kept.dtype)
        passed = put_before(node, "Cast", kept, to=int(kinds.BOOL))
        rewrite(node, "Mul", node.inputs[2], put_before(node, "Cast", passed, to=int(kinds.FLOAT)))


def _is_tame(value: ir.Value, depth: int = 200) -> bool:
    """Tell whether infinities in a tensor come with many, as an overflow does.

    A product of matrices spreads them. The reciprocal of an element is what makes single ones.
    """
    node = value.producer()
    if node is None or node.op_type in SPREADING:
        return True
    if depth == 0 or node.op_type not in LOCAL:
        return False
    first = len(node.inputs) - 1 if node.op_type in ("Where", "ScatterElements") else 0
    last = len(node.inputs) if node.op_type in BINARY else first + 1
    size = axes_of(node.outputs[0])
    # What is broadcast is the same for many places.
    parts = [part for part in node.inputs[first:last] if node.op_type not in BINARY or axes_of(part) == size]
    if node.op_type == "Div" and axes_of(node.inputs[1]) == size:
        return False
    return all(_is_tame(part, depth - 1) for part in parts)


def share_gelu(graph: ir.Graph) -> None:
    """Write a GELU as its input times the distribution function that its gradient computes."""
    for gelu in graph:
        if gelu.op_type == "Gelu" and attribute(gelu, "approximate", "none") == "none":
            share = _distribution(gelu.inputs[0])
            if share is not None:
                rewrite(gelu, "Mul", gelu.inputs[0], share)
    # The gradient's nodes stand behind the GELU.
    graph.sort()


def _distribution(value: ir.Value | None) -> ir.Value | None:
    """Return (1 + erf(x / sqrt(2))) / 2, where the graph has it."""
    for operator, number in (("Mul", math.sqrt(0.5)), ("Erf", None), ("Add", 1.0), ("Mul", 0.5)):
        readers = [node for node, place in value.uses() if node.op_type == operator and place == 0] if value else []
        values = [node.outputs[0] for node in readers if number is None or _is_number(node.inputs[1], number)]
        value = values[0] if values else None
    return value


def _is_number(value: ir.Value, number: float) -> bool:
    found = numbers_of(value)
    return found is not None and found.size == 1 and bool(np.allclose(found, number, rtol=1e-6))


def clean(model: ir.Model, inputs: list[str], outputs: list[str]) -> ModelProto:
    """Return the model with these names of inputs and outputs, and its values numbered.

    Stack traces, doc strings and metadata, in which paths of this machine stand, are left out.
    Raises ValueError for an operator outside of the standard domain.
    """
    import onnx_ir
    from onnx_ir.passes import common

    graph = model.graph
    if strange := sorted({f"{node.domain}::{node.op_type}" for node in graph.all_nodes() if node.domain}):
        raise ValueError(f"operators outside of the standard domain: {', '.join(strange)}")
    simplify(model)
    common.OutputFixPass()(model)
    common.RemoveUnusedOpsetsPass()(model)
    common.ClearMetadataAndDocStringPass()(model)
    _name_values(graph, inputs, outputs)
    cleaned = onnx_ir.to_proto(onnx_ir.Model(graph, ir_version=model.ir_version, producer_name="transect"))
    cleaned.graph.ClearField("value_info")
    return cleaned


def _name_values(graph: ir.Graph, inputs: list[str], outputs: list[str]) -> None:
    """Name values by number and nodes by operator, in the order of the graph."""
    graph.name = "step"
    ends = [*zip(graph.inputs, inputs, strict=True), *zip(graph.outputs, outputs, strict=True)]
    given = {value for value, _ in ends}
    constants = enumerate(graph.initializers.values())
    ends += [(value, f"constant.{number}") for number, value in constants if value not in given]
    for number, node in enumerate(graph.all_nodes()):
        node.name = f"{node.op_type}.{number}"
        for place, value in enumerate(node.outputs):
            if value.name and value not in given:
                ends.append((value, f"value.{number}" + (f".{place}" if place else "")))
    for value, name in ends:
        value.name, value.doc_string = name, None
        value.metadata_props.clear()


def resolve(graph: GraphProto, name: str) -> str:
    """Return the value that a name stands for, through Identity nodes."""
    made = {node.output[0]: node for node in graph.node if node.op_type == "Identity"}
    while name in made:
        name = made[name].input[0]
    return name


def with_outputs(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """Return the model with these of its outputs alone; what leads to none of them is still there."""
    kept = [value for value in model.graph.output if value.name in names]
    part = type(model)()
    part.CopyFrom(model)
    del part.graph.output[:]
    part.graph.output.extend(kept)
    return part


def order_inputs(model: ModelProto, order: Sequence[str]) -> ModelProto:
    """Put inputs in this order, and leave out those that lead to no output, with the nodes between."""
    import onnx_ir
    from onnx_ir.passes import common

    ordered = onnx_ir.from_proto(model)
    common.RemoveUnusedNodesPass()(ordered)
    inputs = {value.name: value for value in ordered.graph.inputs if value.uses()}
    ordered.graph.inputs[:] = [inputs[name] for name in order if name in inputs]
    return onnx_ir.to_proto(ordered)
