"""From a function over torch tensors to an ONNX graph, with axes that may vary."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import FrameType
from typing import TYPE_CHECKING, Any

from transect.domain.errors import BadInput
from transect.portable_step.decompositions import decomposition_table, ours_first
from transect.portable_step.diagnosis import OperatorError, Places, explained, following, source_line
from transect.portable_step.manifest import DTYPES
from transect.portable_step.modules import forgetting, python_values, refuse_changed
from transect.portable_step.randomness import Draws, drawing
from transect.portable_step.scalars import keep_precision
from transect.portable_step.simplification import clean
from transect.portable_step.tracing_modes import quiet, traced
from transect.portable_step.translation import translatable, translate

if TYPE_CHECKING:
    import onnx_ir as ir
    import torch
    from onnx import ModelProto
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

# Lengths for which a condition must hold. Two is the least: at one, tensors broadcast.
LENGTHS = (*range(2, 40), 63, 64, 65, 127, 128, 129, 256, 500, 1000, 1024, 4096, 65536)


def watched_lengths(places: Places) -> ShapeEnv:
    """Return torch's book of symbolic lengths, which notes where a condition on them was met."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    class Watched(ShapeEnv):  # type: ignore[misc]
        where: list[str]
        unknown: list[str]

        def create_unbacked_symint(self, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            self.unknown.append(place_of(frame, running_operator(frame)))
            return super().create_unbacked_symint(*args, **kwargs)

        def evaluate_expr(self, *args: Any, **kwargs: Any) -> Any:
            known = len(self.guards)
            result = super().evaluate_expr(*args, **kwargs)
            if len(self.guards) > known:
                self.where += [place_of(sys._getframe(1))] * (len(self.guards) - known)
            return result

    def place_of(frame: FrameType, *more: str) -> str:
        place = ", ".join(part for part in (places.here(), source_line(frame), *more) if part)
        # In the backward pass there is no place; the operator will tell it.
        return place or running_operator(frame)

    lengths = Watched()
    lengths.where, lengths.unknown = [], []
    return lengths


def running_operator(frame: FrameType | None) -> str:
    """Name the operator of ATen that is being traced in a running frame or above it."""
    from torch._ops import OpOverload

    while frame is not None:
        function = frame.f_locals.get("func")
        if isinstance(function, OpOverload):
            return str(function)
        frame = frame.f_back
    return ""


def refuse_fixed(lengths: Any, symbols: Mapping[str, Any]) -> None:
    """Raise an error when a condition that the trace relied on fails for some lengths.

    A length that only the values of a tensor tell is refused too.
    """
    for place in lengths.unknown:
        raise (OperatorError if place.startswith("aten.") else BadInput)(
            f"{place or 'module'}: how many elements it gives depends on the values of a tensor"
        )
    names = {symbol: name for name, symbol in symbols.items()}
    for number, guard in enumerate(lengths.guards):
        cases = [dict.fromkeys(names, length) for length in LENGTHS]
        cases += [{symbol: length if symbol == key else 7 for symbol in names} for key in names for length in LENGTHS]
        if all(guard.expr.subs(case) == True for case in cases):  # noqa: E712 - sympy's truth
            continue
        text = str(guard.expr)
        for symbol, name in names.items():
            text = text.replace(str(symbol), name)
        place = lengths.where[number] if number < len(lengths.where) else ""
        raise (OperatorError if place.startswith("aten.") else BadInput)(
            f"{place or 'module'}: it works for some lengths only, those with {text}; expected any "
            f"length of {', '.join(names.values())} from 2 on, or axes named by `dynamic`. Write `x.shape[0]` or "
            "`len(x)` without `int` and `float` around it: these make the example's number of it"
        )


Tensors = Mapping[str, "torch.Tensor"]
Axes = Mapping[str, Mapping[int, str]]
Function = Callable[[Tensors], Tensors]
# Names of the arguments seed, step and, where there is one, micro-batch.
Masks = tuple[str, str, str | None]


def trace(
    module: torch.nn.Module,
    function: Function,
    arguments: Tensors,
    axes: Axes,
    masks: Masks | None = None,
    functions: Mapping[str, Any] | None = None,
) -> ModelProto:
    """Return `function` as an ONNX model whose inputs and outputs bear the names of its tensors.

    `axes` names the axes that may vary, by argument; the same name is the same length. `masks`: the
    arguments seed, step and micro-batch from which random masks follow. The function may take
    gradients: the trace is made below autograd, and holds no operator of it. `functions`: the loss and
    metrics that it calls. Raises BadInput, with the place in `module`, for what cannot be traced.
    """
    beside = functions or {}
    with quiet(), following(module) as places, forgetting(module, beside):
        try:
            return _trace(module, function, arguments, axes, masks, places, beside)
        except Exception as error:
            raise explained(error, places) from error


def make_graph(
    module: torch.nn.Module, function: Function, arguments: Tensors, axes: Axes
) -> tuple[torch.fx.GraphModule, list[str]]:
    """Return the graph of ATen that `trace` exports, and the names of its outputs."""
    with quiet(), following(module) as places:
        return _make_graph(module, function, arguments, axes, None, places, {})[:2]


def _trace(
    module: torch.nn.Module,
    function: Function,
    arguments: Tensors,
    axes: Axes,
    masks: Masks | None,
    places: Places,
    functions: Mapping[str, Any],
) -> ModelProto:
    graph, outputs, symbols = _make_graph(module, function, arguments, axes, masks, places, functions)
    _refuse_random(graph)
    _refuse_types(graph)
    keep_precision(graph)
    model = translate(graph)
    _name_lengths(model.graph, symbols)
    return clean(model, list(arguments), outputs)


def _name_lengths(graph: ir.Graph, symbols: Mapping[str, Any]) -> None:
    """Give axes of results the names of the arguments' axes; the translation leaves torch's symbols."""
    names = {str(symbol): name for name, symbol in symbols.items()}
    for node in graph.all_nodes():
        for value in node.outputs:
            if value.shape is not None:
                lengths = [axis if isinstance(axis, int) else axis.value for axis in value.shape]
                value.shape = type(value.shape)([names.get(str(length), length) for length in lengths])


def _refuse_random(graph: torch.fx.GraphModule) -> None:
    """Refuse torch's generator: what it draws is the same in no other language."""
    import torch

    for node in graph.graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise OperatorError(f"{node.target}: it draws random numbers, and of these only dropout's can be exported")


def _refuse_types(graph: torch.fx.GraphModule) -> None:
    import torch

    for node in graph.graph.nodes:
        value = node.meta.get("val")
        for result in value if isinstance(value, (list, tuple)) else [value]:
            if not isinstance(result, torch.Tensor):
                continue
            if result.is_complex():
                raise OperatorError(f"{node.target}: it gives complex numbers, which cannot be exported")
            if (name := str(result.dtype).removeprefix("torch.")) not in DTYPES:
                raise OperatorError(
                    f"{node.target}: it computes in {name}, as under autocast; expected "
                    f"{', '.join(DTYPES)}: leave out autocast, or export a module in float16"
                )


def _make_graph(
    module: torch.nn.Module,
    function: Function,
    arguments: Tensors,
    axes: Axes,
    masks: Masks | None,
    places: Places,
    functions: Mapping[str, Any],
) -> tuple[torch.fx.GraphModule, list[str], dict[str, Any]]:
    """Trace over tensors without content; return the graph, the names of its outputs, and torch's symbols of axes."""
    import torch
    from torch._dispatch.python import enable_python_dispatcher
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch._subclasses.functional_tensor import dispatch_functionalize
    from torch.fx.experimental.proxy_tensor import make_fx

    names = list(arguments)
    outputs: list[str] = []

    def flat(*tensors: torch.Tensor) -> list[torch.Tensor]:
        made = function(dict(zip(names, tensors, strict=True)))
        outputs.extend(made)
        return list(made.values())

    def whole(*tensors: torch.Tensor) -> Any:
        # Masks are drawn below functionalisation: from tensors as they are out here.
        there = dict(zip(names, tensors, strict=True))
        drawn = [there[name] if name else None for name in masks or ()]
        with drawing(Draws(drawn[0], drawn[1], drawn[2])) if masks else nullcontext():
            return dispatch_functionalize(flat)(*tensors)

    def is_written(node: torch.fx.Node) -> bool:
        return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable

    lengths = watched_lengths(places)
    mode = FakeTensorMode(shape_env=lengths, allow_non_fake_inputs=True)
    fakes, symbols = _fakes(arguments, axes, mode)
    before = python_values(module, functions)
    with forgetting(module, functions):
        table = translatable(decomposition_table())
        with mode, ours_first(), enable_python_dispatcher(), traced():
            graph = make_fx(whole, decomposition_table=table)(*fakes)
            _drop_detached(graph)
            if any(is_written(node) for node in graph.graph.nodes):
                # Decompositions run below what takes writes out of the module's own operators. A view
                # that is one of torch's primitives cannot be traced again.
                for node in graph.graph.find_nodes(op="call_function", target=torch.ops.prims.squeeze.default):
                    node.target = torch.ops.aten.squeeze.dims
                graph.recompile()
                graph = make_fx(dispatch_functionalize(graph), decomposition_table=table)(*fakes)
        graph.graph.eliminate_dead_code()
        refuse_changed(before, python_values(module, functions))
    refuse_fixed(lengths, symbols)
    return graph, outputs, symbols


def _drop_detached(graph: torch.fx.GraphModule) -> None:
    """Leave out what only says that a tensor, such as a constant, has no gradient: there is no autograd here."""
    import torch

    aten, prims = torch.ops.aten, torch.ops.prims
    same = (
        aten.detach_.default,
        aten.detach.default,
        aten.alias.default,
        aten.lift_fresh_copy.default,
        prims.view_of.default,
    )
    for node in graph.graph.nodes:
        if node.target in same:
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
    graph.recompile()


def _fakes(arguments: Tensors, axes: Axes, mode: Any) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """Return tensors without content, in which axes of the same name share one symbol; and these."""
    import torch
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    lengths: dict[str, Any] = {}
    symbols: dict[str, Any] = {}
    fakes = []
    for key, tensor in arguments.items():
        shape: list[Any] = list(tensor.shape)
        for axis, name in axes.get(key, {}).items():
            if name not in lengths:
                context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC])
                line = torch.empty(shape[axis])
                source = ConstantSource(name)
                made = mode.from_tensor(line, symbolic_context=context, source=source)
                lengths[name] = made.shape[0]
                symbols[name] = made.shape[0].node.expr
            shape[axis] = lengths[name]
        with mode:
            fakes.append(torch.empty(shape, dtype=tensor.dtype))
    return fakes, symbols
