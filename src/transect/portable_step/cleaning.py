"""An exported graph under our names, without what its making left in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from transect.portable_step.simplification import simplify

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


def clean(model: ModelProto, inputs: list[str], outputs: list[str]) -> ModelProto:
    """Return the model with these names of inputs and outputs, and its values numbered.

    Stack traces, doc strings and metadata, in which paths of this machine stand, are left out.
    Raises ValueError for an operator outside of the standard domain.
    """
    from onnx import ModelProto as Model

    graph = model.graph
    if model.functions or any(node.domain for node in _nodes(graph)):
        strange = sorted({f"{n.domain}::{n.op_type}" for n in _nodes(graph) if n.domain})
        raise ValueError(f"operators outside of the standard domain: {', '.join(strange)}")
    _free_outputs(graph)
    names = {value.name: name for value, name in zip(graph.input, inputs, strict=True)}
    names |= {value.name: name for value, name in zip(graph.output, outputs, strict=True)}
    simplify(graph)
    _drop_dead(graph)
    for number, tensor in enumerate(graph.initializer):
        names[tensor.name] = f"constant.{number}"
    _name_values(graph, names)
    cleaned = Model()
    cleaned.ir_version = model.ir_version
    cleaned.opset_import.extend(entry for entry in model.opset_import if not entry.domain)
    cleaned.producer_name = "transect"
    cleaned.graph.CopyFrom(graph)
    cleaned.graph.name = "step"
    for part in ("value_info", "metadata_props", "quantization_annotation"):
        cleaned.graph.ClearField(part)
    cleaned.graph.ClearField("doc_string")
    for entry in (*_nodes(cleaned.graph), *graph_ends(cleaned.graph), *cleaned.graph.initializer):
        entry.ClearField("doc_string")
        entry.ClearField("metadata_props")
    return cleaned


def graph_ends(graph: GraphProto) -> Iterator[object]:
    """Yield the inputs and outputs."""
    yield from graph.input
    yield from graph.output


def resolve(graph: GraphProto, name: str) -> str:
    """Return the value that a name stands for, through Identity nodes."""
    made = {node.output[0]: node for node in graph.node if node.op_type == "Identity"}
    while name in made:
        name = made[name].input[0]
    return name


def order_inputs(graph: GraphProto, order: Sequence[str]) -> None:
    """Put inputs in this order, and leave out those that lead to no output."""
    drop_unused(graph)
    inputs = {value.name: value for value in graph.input}
    del graph.input[:]
    graph.input.extend(inputs[name] for name in order if name in inputs)


def drop_unused(graph: GraphProto) -> None:
    """Remove nodes that lead to no output, and inputs and constants that no node reads."""
    wanted = _drop_dead(graph)
    for ends in (graph.input, graph.initializer):
        left = [one for one in ends if one.name in wanted]
        del ends[:]
        ends.extend(left)


def _drop_dead(graph: GraphProto) -> set[str]:
    """Remove nodes that lead to no output; return the names of the values that are read."""
    wanted = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):
        if wanted & set(node.output):
            kept.append(node)
            wanted |= {name for one in (node, *_inner(node)) for name in one.input}
    del graph.node[:]
    graph.node.extend(reversed(kept))
    return wanted


def _free_outputs(graph: GraphProto) -> None:
    """Give each output a value of its own: not an input's, nor that of another output."""
    from onnx import helper

    taken = {value.name for value in (*graph.input, *graph.initializer)}
    for number, value in enumerate(graph.output):
        if value.name in taken:
            name = f"output.{number}.alone"
            graph.node.append(helper.make_node("Identity", [value.name], [name]))
            value.name = name
        taken.add(value.name)


def _name_values(graph: GraphProto, names: dict[str, str]) -> None:
    """Name values by number and nodes by operator, in the order of the graph."""
    for number, node in enumerate(_nodes(graph)):
        for place, name in enumerate(node.output):
            if name and name not in names:
                names[name] = f"value.{number}" + (f".{place}" if place else "")
        node.name = f"{node.op_type}.{number}"
    for node in _nodes(graph):
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = names.get(value.name, value.name)
    for node in _nodes(graph):
        for inner in _subgraphs(node):
            for value in (*inner.input, *inner.output, *inner.initializer):
                value.name = names.get(value.name, value.name)


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield all nodes, those of inner graphs after the node that holds them."""
    for node in graph.node:
        yield node
        yield from _inner(node)


def _inner(node: NodeProto) -> Iterator[NodeProto]:
    for graph in _subgraphs(node):
        yield from _nodes(graph)


def _subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
