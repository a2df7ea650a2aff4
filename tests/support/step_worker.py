"""Checks of the portable training step, in the environment of torch: a line of JSON each way.

One process for many tests, for torch takes seconds to start.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict
from typing import Any

import numpy as np
import onnx
import torch
from onnx.reference import ReferenceEvaluator
from torch import nn

from step_coverage import CASES, UNCOVERED, Case
from step_coverage.case import CLASSES, classes, cross_entropy, normal
from step_coverage.check import check, export, runtime_error
from step_families.run import run
from transect.domain.errors import BadInput
from transect.onnx_models.graph_writer import GraphWriter, value_info
from transect.portable_step.assembly import clip_by_norm
from transect.portable_step.decompositions import DECOMPOSITIONS, decomposition_table
from transect.portable_step.diagnosis import OperatorError
from transect.portable_step.translation import OPSET
from worker_calls import answer_calls

ATEN = torch.ops.aten
# Our decompositions register themselves.
decomposition_table()


def case(name: str) -> dict[str, Any]:
    return asdict(check(CASES[name]))


def refused(name: str) -> str:
    """Return the error with which a module that is not covered is refused."""
    uncovered = UNCOVERED[name][0]
    try:
        export(uncovered, uncovered.module())
    except BadInput as error:
        return str(error)
    return "no error"


def family(name: str) -> dict[str, Any]:
    """Export a case of step_families, which compares it with PyTorch."""
    return run(name)


def loss_of(targets: list[int]) -> str:
    """Return cross entropy's loss over five classes, as text: JSON has no NaN."""
    logs = torch.randn(len(targets), 5, generator=torch.Generator().manual_seed(0)).log_softmax(1)
    nll = DECOMPOSITIONS["aten.nll_loss_forward.default"]
    return str(nll(logs, torch.tensor(targets), None, 1, -100)[0].item())


def spoilt(name: str, operator: str, factor: float) -> dict[str, Any]:
    """Check a case while an operator's decomposition gives its first result times a factor."""
    right = DECOMPOSITIONS[operator]

    def wrong(*args: Any, **kwargs: Any) -> Any:
        made = right(*args, **kwargs)
        if isinstance(made, torch.Tensor):
            return made * factor
        return tuple(tensor if tensor is None else tensor * factor for tensor in made)

    DECOMPOSITIONS[operator] = wrong
    try:
        return case(name)
    finally:
        DECOMPOSITIONS[operator] = right


def convolution(given: dict[str, Any]) -> float:
    """Return the largest relative error of a convolution's three gradients."""
    generator = torch.Generator().manual_seed(given["seed"])
    spatial = len(given["kernel"])
    inner, outer = given["channels"], given["filters"]
    groups = given["groups"]
    ends = (inner * groups, outer) if given["transposed"] else (outer * groups, inner)
    x = _normal(generator, given["batch"], inner * groups, *given["size"])
    weight = _normal(generator, *ends, *given["kernel"])
    shape = [given[key] for key in ("stride", "padding", "dilation", "transposed")]
    more = [given["output_padding"] if given["transposed"] else [0] * spatial, groups]
    y = ATEN.convolution(x, weight, None, *shape, *more)
    grad = _normal(generator, *y.shape)
    biases = outer * groups
    arguments = (grad, x, weight, [biases], *shape, *more, [True, True, True])
    return _worst("aten.convolution_backward.default", ATEN.convolution_backward, arguments)


def max_pool(given: dict[str, Any]) -> float:
    """Return the largest relative error of a max pooling's gradient; many elements are equal."""
    generator = torch.Generator().manual_seed(given["seed"])
    x = torch.randint(3, (given["batch"], 2, *given["size"]), generator=generator).double()
    shape = [given[key] for key in ("kernel", "stride", "padding", "dilation", "ceil_mode")]
    y, places = ATEN.max_pool2d_with_indices(x, *shape)
    arguments = (_normal(generator, *y.shape), x, *shape, places)
    function = ATEN.max_pool2d_with_indices_backward
    return _worst("aten.max_pool2d_with_indices_backward.default", function, arguments)


def refused_max_pool(given: dict[str, Any]) -> str:
    """Return the error with which a max pooling is refused, or nothing; PyTorch does not run it."""
    x = torch.zeros(given["batch"], 2, *given["size"])
    shape = [given[key] for key in ("kernel", "stride", "padding", "dilation", "ceil_mode")]
    try:
        left = DECOMPOSITIONS["aten.max_pool2d_with_indices.default"](x, *shape)
    except OperatorError as error:
        return str(error)
    assert left is NotImplemented
    return ""


def avg_pool(given: dict[str, Any]) -> float:
    """Return the largest relative error of an average pooling and of its gradient."""
    generator = torch.Generator().manual_seed(given["seed"])
    x = _normal(generator, given["batch"], 2, *given["size"])
    keys = ("kernel", "stride", "padding", "ceil_mode", "count_include_pad", "divisor")
    shape = [given[key] for key in keys]
    y = ATEN.avg_pool2d(x, *shape)
    backward = (_normal(generator, *y.shape), x, *shape)
    error = _worst("aten.avg_pool2d_backward.default", ATEN.avg_pool2d_backward, backward)
    if given["ceil_mode"] or given["divisor"]:
        error = max(error, _worst("aten.avg_pool2d.default", ATEN.avg_pool2d, (x, *shape)))
    return error


def adaptive_pool(given: dict[str, Any]) -> float:
    """Return the largest relative error of adaptive poolings, average and maximum, and gradients."""
    generator = torch.Generator().manual_seed(given["seed"])
    x = _normal(generator, given["batch"], 2, *given["size"])
    out = given["outputs"]
    grad = _normal(generator, given["batch"], 2, *out)
    places = ATEN.adaptive_max_pool2d(x, out)[1]
    return max(
        _worst("aten._adaptive_avg_pool2d.default", ATEN._adaptive_avg_pool2d, (x, out)),
        _worst("aten._adaptive_avg_pool2d_backward.default", ATEN._adaptive_avg_pool2d_backward, (grad, x)),
        _worst("aten.adaptive_max_pool2d.default", ATEN.adaptive_max_pool2d, (x, out)),
        _worst("aten.adaptive_max_pool2d_backward.default", ATEN.adaptive_max_pool2d_backward, (grad, x, places)),
    )


def attention(given: dict[str, Any]) -> float:
    """Return the largest relative error of attention and its gradients, against its definition."""
    generator = torch.Generator().manual_seed(given["seed"])
    batch, heads, groups = given["batch"], given["heads"], given["groups"]
    queries, keys, width = given["queries"], given["keys"], given["width"]
    q = _normal(generator, batch, heads * groups, queries, width).requires_grad_()
    k, v = (_normal(generator, batch, heads, keys, width).requires_grad_() for _ in range(2))
    mask = None
    if given["mask"] == "bool":
        mask = torch.rand(batch, 1, queries, keys, generator=generator) < 0.7
    elif given["mask"] == "float":
        mask = _normal(generator, queries, keys)
    causal = given["mask"] == "causal"
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        want = nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=groups > 1
        )
    grad = _normal(generator, *want.shape)
    wanted = [want, *torch.autograd.grad(want, (q, k, v), grad)]
    name = "aten._scaled_dot_product_flash_attention_for_cpu{}.default"
    forward, backward = (DECOMPOSITIONS[name.format(suffix)] for suffix in ("", "_backward"))
    with torch.no_grad():
        out, logs = forward(q, k, v, 0.0, causal, attn_mask=mask)
        found = [out, *backward(grad, q, k, v, out, logs, 0.0, causal, attn_mask=mask)]
    return max(itertools.starmap(_relative, zip(found, wanted, strict=True)))


def root_of_relu() -> dict[str, Any]:
    """Check a network whose gradient is infinite where ReLU lets nothing through."""

    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.head = nn.Conv2d(2, 4, 3), nn.LazyLinear(CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.first(x).relu().sqrt().flatten(1))

    shape = {"x": (normal(2, 16, 16),), "y": classes(), "loss": cross_entropy, "rate": None}
    return asdict(check(Case(name="root", group="drawn", what="", build=Root, **shape)))


def negative_length() -> float:
    """Return the error in float64 of a network that multiplies by a length's root, negated and made positive again."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.LazyLinear(CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            factor = -(x.shape[0] ** -0.5)
            return self.head(x.flatten(1)) * factor * abs(factor)

    shape = {"x": (normal(2, 4, 4),), "y": classes(), "loss": cross_entropy, "rate": None}
    return runtime_error(Case(name="scaled", group="drawn", what="", build=Scaled, **shape))


def clipped(gradient: list[float], bound: float) -> list[float]:
    """Return a gradient of float16 clipped by its norm."""
    graph = onnx.GraphProto(name="clip")
    writer = GraphWriter(graph)
    writer.input("g", "float16", (len(gradient),))
    writer.input("clip", "float64", ())
    made = clip_by_norm(writer, {"g": "g"}, "clip", {"g": "float16"})["g"]
    graph.output.append(value_info(made, "float16", (len(gradient),)))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)])
    given = {"g": np.array(gradient, np.float16), "clip": np.array(bound)}
    return ReferenceEvaluator(model).run(None, given)[0].tolist()


def _normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _worst(name: str, function: Any, arguments: tuple[Any, ...]) -> float:
    """Compare an operator with its decomposition, run eagerly."""
    found, want = DECOMPOSITIONS[name](*arguments), function(*arguments)
    if isinstance(want, torch.Tensor):
        found, want = [found], [want]
    return max(itertools.starmap(_relative, zip(found, want, strict=True)))


def _relative(found: torch.Tensor, want: torch.Tensor) -> float:
    if found.shape != want.shape:
        return float("inf")
    far = (found.double() - want.double()).abs().nan_to_num(nan=float("inf"))
    return float(far.max() / want.double().abs().max().clamp_min(1e-30)) if far.any() else 0.0


if __name__ == "__main__":
    torch.set_num_threads(1)
    answer_calls(globals())
