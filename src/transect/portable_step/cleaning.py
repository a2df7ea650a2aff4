"""An exported graph under our names, without what its making left in it, by the passes of onnx-ir."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from transect.portable_step.simplification import simplify

if TYPE_CHECKING:
    import onnx_ir as ir
    from onnx import GraphProto, ModelProto


def clean(model: ir.Model, inputs: list[str], outputs: list[str]) -> ModelProto:
    """Return the model with these names of inputs and outputs, and its values numbered.

    Stack traces, doc strings and metadata, in which paths of this machine stand, are left out.
    Raises ValueError for an operator outside of the standard domain.
    """
    import onnx_ir
    from onnx_ir.passes import common

    graph = model.graph
    if strange := sorted({f"{one.domain}::{one.op_type}" for one in graph.all_nodes() if one.domain}):
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
    ends += [(value, f"constant.{number}") for number, value in enumerate(graph.initializers.values())]
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


def order_inputs(model: ModelProto, order: Sequence[str]) -> ModelProto:
    """Put inputs in this order, and leave out those that lead to no output, with the nodes between."""
    import onnx_ir
    from onnx_ir.passes import common

    ordered = onnx_ir.from_proto(model)
    common.RemoveUnusedNodesPass()(ordered)
    inputs = {value.name: value for value in ordered.graph.inputs if value.uses()}
    ordered.graph.inputs[:] = [inputs[name] for name in order if name in inputs]
    return onnx_ir.to_proto(ordered)
