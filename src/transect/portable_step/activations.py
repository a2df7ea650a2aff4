"""Activations and their gradients in a traced step, written in other ways that are faster."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from transect.portable_step.graph_edits import VIEWS, attribute, axes_of, made_by, numbers_of, put_before, rewrite

if TYPE_CHECKING:
    import onnx_ir as ir

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
        zeros = [numbers_of(one) for one in (node.inputs[1], less.inputs[1])] if less else [None]
        if not less or any(one is None or one.size > 1 or one.any() for one in zeros):
            continue
        shape, kept = axes_of(node.outputs[0]), less.inputs[0]
        if (
            made_by(kept, "Relu") is None
            or shape is None
            or math.prod(one for one in shape[1:] if isinstance(one, int)) < MANY
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
    parts = [one for one in node.inputs[first:last] if node.op_type not in BINARY or axes_of(one) == size]
    if node.op_type == "Div" and axes_of(node.inputs[1]) == size:
        return False
    return all(_is_tame(one, depth - 1) for one in parts)


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
        value = next((one.outputs[0] for one in readers if number is None or _is_number(one.inputs[1], number)), None)
    return value


def _is_number(value: ir.Value, number: float) -> bool:
    found = numbers_of(value)
    return found is not None and found.size == 1 and bool(np.allclose(found, number, rtol=1e-6))
