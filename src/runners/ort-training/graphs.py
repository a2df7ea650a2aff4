"""What ONNX Runtime's gradient builder asks of a graph and PyTorch's exporters do not write."""

from __future__ import annotations

from collections import Counter

import onnx

# Outputs of the forward pass that a gradient is made from; an exporter leaves out what is unused.
_OUTPUTS = {"LayerNormalization": 3, "Dropout": 2}


def repair(model: onnx.ModelProto) -> dict[str, int]:
    """Change a model so that a gradient can be built; return how often, by operator.

    LayerNormalization gets its mean and inverse deviation as outputs and Dropout its mask.
    CastLike, which has no gradient, becomes the Cast that it stands for.
    """
    done: Counter[str] = Counter()
    for node in model.graph.node:
        wanted = _OUTPUTS.get(node.op_type, 0)
        if len(node.output) < wanted:
            first = node.output[0]
            node.output.extend(f"{first}.{n}" for n in range(len(node.output), wanted))
            done[node.op_type] += 1
    if any(node.op_type == "CastLike" for node in model.graph.node):
        types = _types(model)
        for node in model.graph.node:
            if node.op_type == "CastLike":
                like = types[node.input[1]]
                node.op_type = "Cast"
                del node.input[1:], node.attribute[:]
                node.attribute.append(onnx.helper.make_attribute("to", like))
                done["CastLike"] += 1
    return dict(done)


def _types(model: onnx.ModelProto) -> dict[str, int]:
    """Return the element type of every tensor that shape inference knows."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    found = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        found[value.name] = value.type.tensor_type.elem_type
    return found


def check_weights(model: onnx.ModelProto, wanted: dict[str, tuple[int, ...]]) -> None:
    """Check that the model holds these weights under their names, with their shapes.

    Raises ValueError naming one that it does not: an exporter that transposes weights, or keeps
    equal ones once, renames them.
    """
    held = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    for name, shape in wanted.items():
        if held.get(name) != shape:
            raise ValueError(f"parameter '{name}' of shape {shape} is {held.get(name, 'not there')}")
