"""Writes small ONNX models for the tests of runners: run in the environment of torch, which has onnx.

`python runner_models.py FOLDER`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnx import TensorProto, ValueInfoProto, helper, numpy_helper, save

# Those of the contract, as ONNX calls them.
DTYPES = {
    "float32": "FLOAT", "float64": "DOUBLE", "float16": "FLOAT16", "bfloat16": "BFLOAT16",
    "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
    "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "bool": "BOOL", "string": "STRING",
}  # fmt: skip


def _tensor(name: str, dtype: str, shape: Sequence[Any] | None) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, getattr(TensorProto, DTYPES[dtype]), shape)


def _store(
    path: Path,
    nodes: list[Any],
    inputs: list[ValueInfoProto],
    outputs: list[ValueInfoProto],
    weights: Sequence[Any] = (),
    **more: Any,
) -> None:
    import numpy as np

    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights]
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, stored)
    opset = helper.make_opsetid("", more.get("opset", 17))
    save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)


def write_models(folder: Path) -> None:
    """Write one file for each trait that a runner must cope with."""
    import numpy as np

    node = helper.make_node
    x, y = _tensor("x", "float32", ["n", 4]), _tensor("y", "float32", ["n", 3])
    weights = np.arange(12, dtype=np.float32).reshape(4, 3)
    # Two inputs of different types, one with a default; two outputs of different types.
    _store(
        folder / "two.onnx",
        [node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["y"]),
         node("Identity", ["k"], ["k_out"])],
        [x, _tensor("k", "int64", ["n"]), _tensor("b", "float32", [3])],
        [y, _tensor("k_out", "int64", ["n"])],
        [("w", weights), ("b", np.ones(3, np.float32))],
    )  # fmt: skip
    _store(
        folder / "types.onnx",
        [node("Identity", [name], [f"{name}_out"]) for name in DTYPES],
        [_tensor(name, name, ["n", "m"]) for name in DTYPES],
        [_tensor(f"{name}_out", name, ["n", "m"]) for name in DTYPES],
    )
    _store(
        folder / "whole.onnx",
        [node("Identity", ["scalar"], ["s"]), node("Identity", ["empty"], ["e"])],
        [_tensor("scalar", "float64", []), _tensor("empty", "string", ["n", 0])],
        [_tensor("s", "float64", []), _tensor("e", "string", ["n", 0])],
    )
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    inner = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
    absent = helper.make_optional_type_proto(inner)
    _store(
        folder / "kinds.onnx",
        [node("SequenceConstruct", ["x", "x"], ["q"]), node("Relu", ["x"], ["y"]),
         node("Optional", [], ["o"], type=inner)],
        [x],
        [helper.make_value_info("q", kind), _tensor("y", "float32", ["n", 4]),
         helper.make_value_info("o", absent)],
    )  # fmt: skip
    float8 = helper.make_tensor_value_info("y", TensorProto.FLOAT8E4M3FN, ["n", 4])
    cast = node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E4M3FN)
    _store(folder / "float8.onnx", [cast], [x], [float8], opset=19)
    # The reason is found when it runs: no number of rows makes 7.
    shape = [("to", np.array([-1, 7]))]
    reshaped = _tensor("y", "float32", ["m", 7])
    _store(folder / "fails.onnx", [node("Reshape", ["x", "to"], ["y"])], [x], [reshaped], shape)
    # The same output for any number of rows.
    total = _tensor("y", "float32", [1, 4])
    _store(folder / "sum.onnx", [node("ReduceSum", ["x", "a"], ["y"])], [x], [total],
           [("a", np.array([0]))])  # fmt: skip
    _store(folder / "relu.onnx", [node("Relu", ["x"], ["y"])], [x],
           [_tensor("y", "float32", ["n", 4])])  # fmt: skip


if __name__ == "__main__":
    write_models(Path(sys.argv[1]))
