"""What is inside an ONNX file, in numbers and words."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from transect.onnx_models.counting import graph_costs

__all__ = ["inspect_model"]


def inspect_model(path: Path) -> dict[str, Any]:
    """Check the file and describe it; needs the onnx package.

    `initialisers_shared` counts the initialisers that more than one node reads (weights used
    twice but stored once); `initialisers_duplicated` those that have type, shape and content of
    an earlier one (weights stored twice). Raises onnx.checker.ValidationError or
    onnx.shape_inference.InferenceError when the model is not valid, DecodeError when the file is
    no ONNX.
    """
    import onnx

    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.shape_inference.infer_shapes(
        onnx.load(str(path)), check_type=True, strict_mode=True, data_prop=True
    )
    graph = model.graph
    readers = Counter(name for node in graph.node for name in set(node.input))
    contents = Counter(
        (i.data_type, tuple(i.dims), onnx.numpy_helper.to_array(i).tobytes())
        for i in graph.initializer
    )
    domains = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    ends = {"input": _ends(graph.input), "output": _ends(graph.output)}
    return {
        "operators_by_type": dict(sorted(Counter(node.op_type for node in graph.node).items())),
        "initialisers": len(graph.initializer),
        "initialisers_shared": sum(readers[i.name] > 1 for i in graph.initializer),
        "initialisers_duplicated": sum(count - 1 for count in contents.values()),
        "dynamic_batch": all(
            isinstance(one["shape"][0], str) for group in ends.values() for one in group
        ),
        "checker": "onnx.checker full check and strict shape inference passed",
        **ends,
        "costs": graph_costs(graph),
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "opset": domains["ai.onnx"],
        "opset_by_domain": domains,
        "ir_version": model.ir_version,
    }


def _ends(values: Any) -> list[dict[str, Any]]:
    """Name, element type and shape of graph inputs or outputs; a symbolic axis is its name."""
    import onnx

    return [
        {
            "name": value.name,
            "dtype": onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower(),
            "shape": [
                axis.dim_value if axis.HasField("dim_value") else axis.dim_param or "?"
                for axis in value.type.tensor_type.shape.dim
            ],
        }
        for value in values
    ]
