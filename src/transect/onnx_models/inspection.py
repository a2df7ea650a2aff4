"""What is inside an ONNX file, in numbers and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transect.onnx_models.counting import graph_costs


def inspect_model(path: Path, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Check the file and describe it; needs the onnx package.

    `sizes` are those for which costs are counted, of symbolic axes besides the batch's, by name; that
    one is taken to be 1.

    `initialisers_shared` counts the initialisers that more than one node reads (weights used
    twice but stored once); `initialisers_duplicated` those that have type, shape and content of
    an earlier one (weights stored twice). Raises onnx.checker.ValidationError or
    onnx.shape_inference.InferenceError when the model is not valid, DecodeError when the file is
    no ONNX.
    """
    import onnx

    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.shape_inference.infer_shapes(onnx.load(str(path)), check_type=True, strict_mode=True, data_prop=True)
    counted = _sized(model, sizes) if sizes else model
    graph = model.graph
    readers = Counter(name for node in graph.node for name in set(node.input))
    contents = Counter((i.data_type, tuple(i.dims), onnx.numpy_helper.to_array(i).tobytes()) for i in graph.initializer)
    domains = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    ends = _all_ends(graph)
    return {
        "operators_by_type": dict(sorted(Counter(node.op_type for node in graph.node).items())),
        "initialisers": len(graph.initializer),
        "initialisers_shared": sum(readers[i.name] > 1 for i in graph.initializer),
        "initialisers_duplicated": sum(count - 1 for count in contents.values()),
        "dynamic_batch": all(
            end["shape"] and isinstance(end["shape"][0], str) for group in ends.values() for end in group
        ),
        "checker": "onnx.checker full check and strict shape inference passed",
        **ends,
        "costs": costs_of(counted.graph),
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "opset": domains["ai.onnx"],
        "opset_by_domain": domains,
        "ir_version": model.ir_version,
    }


def costs_of(graph: Any) -> dict[str, Any] | None:
    """Return what a graph with inferred shapes costs; None where the sizes of its ends are not known."""
    return graph_costs(graph) if _countable(_all_ends(graph)) else None


def computes(costs: Mapping[str, Any] | None) -> bool:
    """Whether a file does more than pass on its inputs, as far as is known."""
    return costs is None or bool(costs["flops_per_sample"] or costs["operators_without_rule"])


def file_metrics(path: Path, facts: dict[str, Any], seconds: float) -> dict[str, float | None]:
    """Take the metrics of a file and its export out of what `inspect_model` tells."""
    return {
        "model_bytes": path.stat().st_size,
        "opset": facts.pop("opset"),
        "ir_version": facts.pop("ir_version"),
        "operators": sum(facts["operators_by_type"].values()),
        "export_time": seconds,
    }


def _sized(model: Any, sizes: Mapping[str, int]) -> Any:
    """Return a copy with constant axes of its inputs, and shapes inferred from them."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        for axis in value.type.tensor_type.shape.dim:
            if not axis.HasField("dim_value"):
                axis.dim_value = sizes.get(axis.dim_param, 1)
    del copy.graph.value_info[:]
    return onnx.shape_inference.infer_shapes(copy, data_prop=True)


def _all_ends(graph: Any) -> dict[str, list[dict[str, Any]]]:
    given = {i.name for i in graph.initializer}
    # Older exporters list weights among the inputs, as defaults.
    inputs = [value for value in graph.input if value.name not in given]
    return {"input": _ends(inputs), "output": _ends(graph.output)}


def _countable(ends: dict[str, list[dict[str, Any]]]) -> bool:
    """Whether the size of all ends is known: no texts, sequences or maps, one unknown axis at most."""
    return not any(
        end["dtype"] in ("string", "undefined") or sum(isinstance(axis, str) for axis in end["shape"]) > 1
        for group in ends.values()
        for end in group
    )


def _ends(values: Any) -> list[dict[str, Any]]:
    """Name, element type and shape of graph inputs or outputs; a symbolic axis is its name.

    What is no tensor has the type `undefined` and no axes.
    """
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
