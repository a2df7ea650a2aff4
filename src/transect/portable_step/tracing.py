"""From a function over torch tensors to an ONNX graph, with axes that may vary."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from transect.portable_step.cleaning import clean
from transect.portable_step.decompositions import decomposition_table
from transect.portable_step.randomness import Draws, drawing

if TYPE_CHECKING:
    import torch
    from onnx import ModelProto

__all__ = ["OPSET", "trace"]

OPSET = 20

Tensors = Mapping[str, "torch.Tensor"]
Axes = Mapping[str, Mapping[int, str]]
Function = Callable[[Tensors], Tensors]
# Names of the arguments seed, step and, where there is one, micro-batch.
Masks = tuple[str, str, str | None]


def trace(
    function: Function, arguments: Tensors, axes: Axes, masks: Masks | None = None
) -> ModelProto:
    """Return `function` as an ONNX model whose inputs and outputs bear the names of its tensors.

    `axes` names the axes that may vary, by argument; the same name is the same length. `masks`: the
    arguments seed, step and micro-batch from which random masks follow. The function may take
    gradients: the trace is made below autograd, and holds no operator of it.
    """
    import torch

    with _quiet():
        graph, outputs = _make_graph(function, arguments, axes, masks)
        dims = {name: torch.export.Dim(name) for one in axes.values() for name in one.values()}
        dynamic = tuple(
            {axis: dims[name] for axis, name in axes.get(key, {}).items()} for key in arguments
        )
        # Tensors of their own: export takes arguments that are one tensor for one argument.
        blanks = tuple(torch.empty_like(tensor) for tensor in arguments.values())
        program = torch.export.export(graph, blanks, dynamic_shapes=dynamic, strict=False)
        exported = torch.onnx.export(program, dynamo=True, opset_version=OPSET, verbose=False)
    assert exported is not None
    return clean(exported.model_proto, list(arguments), outputs)


def _make_graph(
    function: Function, arguments: Tensors, axes: Axes, masks: Masks | None
) -> tuple[torch.fx.GraphModule, list[str]]:
    """Trace over tensors without content; return the graph and the names of its outputs."""
    from torch._dispatch.python import enable_python_dispatcher
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch._subclasses.functional_tensor import dispatch_functionalize
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    names, outputs = list(arguments), []

    def flat(*tensors: torch.Tensor) -> list[torch.Tensor]:
        made = function(dict(zip(names, tensors, strict=True)))
        outputs.extend(made)
        return list(made.values())

    def whole(*tensors: torch.Tensor) -> Any:
        # Masks are drawn below functionalisation: from tensors as they are out here.
        there = dict(zip(names, tensors, strict=True))
        with drawing(Draws(*(there.get(name) for name in masks))) if masks else nullcontext():
            return dispatch_functionalize(flat)(*tensors)

    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    fakes = _fakes(arguments, axes, mode)
    with mode, enable_python_dispatcher():
        graph = make_fx(whole, decomposition_table=decomposition_table())(*fakes)
    return graph, outputs


def _fakes(arguments: Tensors, axes: Axes, mode: Any) -> list[torch.Tensor]:
    """Return tensors without content, in which axes of the same name share one symbol."""
    import torch
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    symbols: dict[str, Any] = {}
    fakes = []
    for key, tensor in arguments.items():
        shape: list[Any] = list(tensor.shape)
        for axis, name in axes.get(key, {}).items():
            if name not in symbols:
                context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC])
                line = torch.empty(shape[axis])
                source = ConstantSource(name)
                made = mode.from_tensor(line, symbolic_context=context, source=source)
                symbols[name] = made.shape[0]
            shape[axis] = symbols[name]
        with mode:
            fakes.append(torch.empty(shape, dtype=tensor.dtype))
    return fakes


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back what the exporter says of itself."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
