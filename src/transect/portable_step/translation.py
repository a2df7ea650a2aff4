"""From a graph of ATen to ONNX, by torch's own translations of operators.

The trace is what `torch.onnx.export` would make of it: without what changes tensors in place, and with
those operators alone that have a translation. So it is translated as it is; `torch.export` and the
decompositions of the exporter would trace it three times more, which takes most of the time.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx_ir as ir
    import torch

OPSET = 20


def translatable(table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """Return decompositions of all operators that ONNX lacks: those of a table, else torch's."""
    from torch.onnx._internal.exporter import _decomp

    known = set(_decomp.get_onnx_implemented_overloads(_registry()))
    found: dict[Any, Callable[..., Any]] = _decomp.create_onnx_friendly_decomposition_table(known)
    return found | dict(table)


def translate(graph: torch.fx.GraphModule) -> ir.Model:
    """Return a graph of ATen in ONNX, shortened by onnxscript's rules; its tensors bear the nodes' names.

    Raises what torch.onnx does for an operator without a translation.
    """
    import onnx_ir
    from onnxscript._framework_apis.torch_2_8 import convert_version
    from torch.onnx._internal.exporter import _core, _fx_passes, _ir_passes

    _multiply_lengths(graph)
    _describe(graph)
    _promote_types(graph)
    graph = _fx_passes.remove_assertion_nodes(graph)
    model = onnx_ir.Model(onnx_ir.Graph([], [], nodes=[], name="step"), ir_version=10)
    with _signatures_kept():
        values = _core._translate_fx_graph(
            graph.graph, model, graph_like=model.graph, owned_graphs={}, lower="at_conversion", registry=_registry()
        )
    (made,) = (node.args[0] for node in graph.graph.nodes if node.op == "output")
    model.graph.inputs[:] = [values[node.name] for node in graph.graph.nodes if node.op == "placeholder"]
    model.graph.outputs[:] = [values[node.name] for node in made]
    _ir_passes.add_opset_imports(model)
    model = convert_version(model, OPSET)
    _shorten(model)
    return model


def _shorten(model: ir.Model) -> None:
    """Do what `onnxscript.optimizer.optimize` does, in less time.

    Left out is its rule of two slices that are one split: it compares all nodes with all others.
    """
    from onnx_ir.passes import Sequential, common
    from onnxscript import rewriter
    from onnxscript.optimizer import _constant_folding as folding
    from onnxscript.rewriter.onnx_fusions import fuse

    common.InlinePass()(model)
    patterns = [(rule, rule._target_pattern.output_nodes) for rule in rewriter._DEFAULT_REWRITE_RULES]
    rules = [_only_at(rule, ends[0].op_identifier()) for rule, ends in patterns if len(ends) == 1]
    fold = folding.FoldConstantsPass(
        shape_inference=True,
        input_size_limit=folding.DEFAULT_CONSTANT_FOLD_INPUT_SIZE_LIMIT,
        output_size_limit=folding.DEFAULT_CONSTANT_FOLD_OUTPUT_SIZE_LIMIT,
        should_fold=lambda _: None,
    )
    unused = common.RemoveUnusedNodesPass()
    lifted = common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)
    Sequential(
        fold, rewriter.RewritePass(rules), unused, common.RemoveUnusedFunctionsPass(), lifted, common.NameFixPass()
    )(model)
    fuse(model)


def _only_at(rule: Any, operator: Any) -> Any:
    """Let a rule look at nodes of the operator that its pattern ends with alone; None is any."""
    tried, changed = rule.try_rewrite, copy.copy(rule)
    if operator is not None:
        changed.try_rewrite = lambda model, graph, node, **more: (
            tried(model, graph, node, **more) if node.op_identifier() == operator else None
        )
    return changed


@functools.cache
def _registry() -> Any:
    from torch.onnx._internal.exporter import _registration

    return _registration.ONNXRegistry.from_torchlib(opset_version=OPSET)


def _promote_types(graph: torch.fx.GraphModule) -> None:
    """Cast what an operator would cast itself, as torch's pass does, but run again what it changes alone."""
    import torch
    from torch._dispatch.python import enable_python_dispatcher
    from torch.onnx._internal.fx.passes import type_promotion

    class Promotion(type_promotion._TypePromotionInterpreter):  # type: ignore[misc]
        def run_node(self, n: torch.fx.Node) -> Any:
            if n.op not in ("call_function", "get_attr"):
                return super().run_node(n)
            rule = type_promotion.get_type_promotion_rule(n, self.type_promotion_table)
            if rule is not None:
                with self._set_current_node(n):
                    self._maybe_promote_node(n, rule)
            return n.meta["val"]

    given = [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]
    with torch._guards.detect_fake_mode(given), enable_python_dispatcher(), torch.fx.traceback.preserve_node_meta():
        Promotion(graph, type_promotion.TypePromotionTable()).run(*given)


@contextlib.contextmanager
def _signatures_kept() -> Iterator[None]:
    """Let the translation read an operator's signature once, not for each of its nodes."""
    from onnx_ir.schemas import OpSignature

    before, read = vars(OpSignature)["from_op_schema"], OpSignature.from_op_schema
    kept: dict[Any, Any] = {}

    def read_once(schema: Any) -> Any:
        key = schema.domain, schema.name, schema.since_version
        if key not in kept:
            kept[key] = read(schema)
        return kept[key]

    OpSignature.from_op_schema = read_once
    try:
        yield
    finally:
        OpSignature.from_op_schema = before


def _multiply_lengths(graph: torch.fx.GraphModule) -> None:
    """Write the number of a tensor's elements as the product of its lengths, which have a translation."""
    import torch

    for node in graph.graph.nodes:
        if node.target is torch.ops.aten.sym_numel.default:
            (tensor,) = node.args
            with graph.graph.inserting_before(node):
                product: Any = 1
                for axis, length in enumerate(tensor.meta["val"].shape):
                    if not isinstance(length, int):
                        length = graph.graph.call_function(torch.ops.aten.sym_size.int, (tensor, axis))
                    product = graph.graph.call_function(operator.mul, (product, length))
            node.replace_all_uses_with(product)
            graph.graph.erase_node(node)


def _describe(graph: torch.fx.GraphModule) -> None:
    """Say of each node what it gives: of those that came after the trace, and constants themselves."""
    import torch

    def known(argument: torch.fx.Node) -> Any:
        return argument.meta["val"]

    mode = torch._guards.detect_fake_mode([n.meta["val"] for n in graph.graph.nodes if n.op == "placeholder"])
    for node in graph.graph.nodes:
        if node.op == "get_attr":
            node.meta["val"] = getattr(graph, node.target)
        elif node.op == "call_function" and "val" not in node.meta:
            args, kwargs = (torch.fx.node.map_arg(given, known) for given in (node.args, node.kwargs))
            with mode:
                node.meta["val"] = node.target(*args, **kwargs)
