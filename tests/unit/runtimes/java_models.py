"""Makes the models of the tests of the Java runner; run by an interpreter that has onnx.

`python java_models.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
T = TensorProto


def _save(path: Path, nodes: list, inputs: list, outputs: list, weights: tuple = ()) -> None:
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, initializer=list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 8
    onnx.save(model, str(path))


def _identity(path: Path, dtype: int, shape: list) -> None:
    ends = [helper.make_tensor_value_info(name, dtype, shape) for name in ("x", "y")]
    _save(path, [helper.make_node("Identity", ["x"], ["y"])], ends[:1], ends[1:])


def main(folder: Path) -> None:
    """Write the models."""
    value = helper.make_tensor_value_info
    _identity(folder / "identity.onnx", T.FLOAT, ["N", "M"])
    _identity(folder / "scalar.onnx", T.FLOAT, [])
    for name in ("BFLOAT16", "FLOAT16", "DOUBLE", "INT8", "INT16", "UINT8", "BOOL", "UINT32"):
        _identity(folder / f"identity-{name.lower()}.onnx", getattr(T, name), ["N", "M"])
    _identity(folder / "identity-string.onnx", T.STRING, ["N", "M"])
    weight = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
    _save(
        folder / "linear.onnx",
        [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])],
        [value("x", T.FLOAT, ["N", 4])],
        [value("y", T.FLOAT, ["N", 3])],
        (numpy_helper.from_array(weight, "w"),),
    )
    # The rows come out as the second axis.
    _save(
        folder / "transposed.onnx",
        [helper.make_node("Transpose", ["x"], ["y"])],
        [value("x", T.FLOAT, ["N", "M"])],
        [value("y", T.FLOAT, ["M", "N"])],
    )
    casts = {"u16": T.UINT16, "u32": T.UINT32, "u64": T.UINT64, "i32": T.INT32, "f64": T.DOUBLE}
    _save(
        folder / "mixed.onnx",
        [helper.make_node("Cast", ["i"], [name], to=to) for name, to in casts.items()]
        + [helper.make_node("Identity", ["s"], ["t"]), helper.make_node("Not", ["b"], ["c"])],
        [value("i", T.INT64, ["N", 2]), value("s", T.STRING, ["N"]), value("b", T.BOOL, ["N"])],
        [value(name, to, ["N", 2]) for name, to in casts.items()]
        + [value("t", T.STRING, ["N"]), value("c", T.BOOL, ["N"])],
    )
    _save(
        folder / "sequence.onnx",
        [helper.make_node("SequenceConstruct", ["x", "x"], ["y"])],
        [value("x", T.FLOAT, ["N", "M"])],
        [helper.make_tensor_sequence_value_info("y", T.FLOAT, None)],
    )
    _save(
        folder / "constant-text.onnx",
        [helper.make_node("Identity", ["w"], ["y"])],
        [],
        [value("y", T.STRING, [1])],
        (helper.make_tensor("w", T.STRING, [1], ["\N{GRINNING FACE}".encode()]),),
    )
    _save(
        folder / "unknown.onnx",
        [helper.make_node("NoSuchOperator", ["x"], ["y"])],
        [value("x", T.FLOAT, ["N", 4])],
        [value("y", T.FLOAT, ["N", 3])],
    )
    complex_ = [value(name, T.COMPLEX64, ["N", "M"]) for name in ("x", "y")]
    _save(folder / "complex.onnx", [helper.make_node("Identity", ["x"], ["y"])], complex_[:1], complex_[1:])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
