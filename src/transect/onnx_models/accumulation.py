"""The longest sum of products in an ONNX graph, and the tolerance that follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from transect.onnx_models.counting import value_shapes
from transect.onnx_models.tensors import NoTensor
from transect.onnx_models.tolerance import UNIT_ROUNDOFF

# Runs that round alike but sum in another order err by like amounts: room for the tails.
_SAFETY = 32
# A framework that computes in float32 stays within 6 of these, with the models that there are; one
# that takes TF32 or bfloat16 for it errs by thousands.
IMPRECISE = 32
# However large the framework's own error: two roundings of float16.
_CEILING = 2.0**-10

MADE_TOLERANCE_RULE = (
    "of floating-point outputs max(32 * framework_error, 2 sqrt(K+1) u * output_scale), and at most "
    "2^-10 output_scale; u = 2^-24; K "
    "is the longest sum of products in the ONNX graph, whose independent roundings add up like sqrt(K) "
    "u; output_scale is the largest absolute output; framework_error is the framework's largest "
    "distance to its own float64 run. Where the framework computes in float64 only, framework_error is "
    "unknown and taken as sqrt(K+1) u * output_scale. Of integers, texts, and models that compute "
    "nothing: 0. Weights rounded to fp16 do not pass. Where K is known, a framework_error above 32 "
    "sqrt(K+1) u * output_scale is a wrong result: the framework does not compute in float32"
)


def longest_accumulation(graph: Any) -> int:
    """Return the number of terms of the longest sum that a node of the graph or its subgraphs makes.

    0: there is none that is known. Where a shape is not, the framework_error is what counts.
    """
    shapes = value_shapes(graph)
    longest = 0
    for node in graph.node:
        longest = max(longest, _terms(node, shapes), *map(longest_accumulation, _inside(node)))
    return longest


def _inside(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g


def _terms(node: Any, shapes: dict[str, list[int]]) -> int:
    # A row of zeros for an unknown shape: whatever is read from it counts as no term.
    inputs = [shapes.get(name) or [0, 0] for name in node.input]
    match node.op_type:
        case "Gemm":
            turned = any(a.name == "transB" and a.i for a in node.attribute)
            return inputs[1][-1 if turned else 0]
        case "MatMul":
            return max(inputs[0][-1], inputs[1][-2] if len(inputs[1]) > 1 else inputs[1][0])
        case "Conv":
            return prod(inputs[1][1:])
        case "LSTM" | "GRU" | "RNN":
            return inputs[1][-1] + inputs[2][-1]
        case "GlobalAveragePool" | "ReduceMean" | "ReduceSum":
            return prod(inputs[0]) // max(1, prod(shapes.get(node.output[0]) or [1]))
        case "LayerNormalization" | "Softmax":
            return inputs[0][-1]
        case "LinearClassifier" | "LinearRegressor":
            return max(len(a.floats) for a in node.attribute)
    return 0


def made_tolerances(
    outputs: Mapping[str, np.ndarray | NoTensor],
    exact: Mapping[str, np.ndarray] | None,
    longest: int,
    *,
    computes: bool,
) -> dict[str, float]:
    """Return the largest permitted absolute difference of each tensor, by the rule.

    `outputs` as the framework gives them, `exact` the same in float64, or None. The square root: N.
    J. Higham and T. Mary, "A new approach to probabilistic rounding error analysis", 2019.
    """
    tolerances = {}
    for name, found in outputs.items():
        if isinstance(found, NoTensor):
            continue
        if found.dtype.kind != "f" or not computes:
            tolerances[name] = 0.0
            continue
        wanted = np.asarray((exact or {}).get(name, found), np.float64)
        rounding = _rounding(wanted, longest)
        error = _error(found, wanted) if exact is not None else rounding
        largest = _CEILING * float(np.abs(wanted).max())
        tolerances[name] = min(max(_SAFETY * error, 2 * rounding), largest)
    return tolerances


def imprecise_outputs(
    outputs: Mapping[str, np.ndarray | NoTensor], exact: Mapping[str, np.ndarray] | None, longest: int
) -> dict[str, float]:
    """Return framework_error over sqrt(K+1) u * output_scale of each output where it exceeds `IMPRECISE`.

    None does where K or float64 is unknown. Infinite where an output is not finite.
    """
    if not longest or exact is None:
        return {}
    found = {}
    for name, output in outputs.items():
        if isinstance(output, NoTensor) or output.dtype.kind != "f" or name not in exact:
            continue
        wanted = np.asarray(exact[name], np.float64)
        error, rounding = _error(output, wanted), _rounding(wanted, longest)
        ratio = error / rounding if rounding else math.inf if error else 0.0
        if ratio > IMPRECISE:
            found[name] = ratio
    return found


def _rounding(wanted: np.ndarray, longest: int) -> float:
    return math.sqrt(longest + 1) * UNIT_ROUNDOFF * float(np.abs(wanted).max())


def _error(found: np.ndarray, wanted: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        error = float(np.abs(found - wanted).max())
    return error if math.isfinite(error) else math.inf
