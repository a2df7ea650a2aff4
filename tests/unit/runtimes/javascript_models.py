"""Makes the models of the tests of the runners in JavaScript; run by an interpreter that has onnx.

`python javascript_models.py FOLDER`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

value = helper.make_tensor_value_info
node = helper.make_node

# y = relu(x w), x: (N, 4).
WEIGHT = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
NUMBERS = {
    "f32": T.FLOAT,
    "f64": T.DOUBLE,
    "f16": T.FLOAT16,
    "i8": T.INT8,
    "i16": T.INT16,
    "i32": T.INT32,
    "i64": T.INT64,
    "u8": T.UINT8,
    "u16": T.UINT16,
    "u32": T.UINT32,
    "u64": T.UINT64,
    "flag": T.BOOL,
    "text": T.STRING,
}


def save(path: Path, nodes: Sequence[Any], ends: tuple[list[Any], list[Any]], *weights: Any) -> Any:
    """Write a model; return it."""
    graph = helper.make_graph(nodes, path.stem, *ends, initializer=list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))
    return model


def main(folder: Path) -> None:
    """Write the models."""
    x, y = value("x", T.FLOAT, ["N", 4]), value("y", T.FLOAT, ["N", 3])
    relu = [node("MatMul", ["x", "w"], ["m"]), node("Relu", ["m"], ["y"])]
    linear = save(folder / "linear.onnx", relu, ([x], [y]), numpy_helper.from_array(WEIGHT, "w"))
    onnx.save(
        linear, str(folder / "external.onnx"), save_as_external_data=True, location="external.data", size_threshold=0
    )
    every = [value(name, kind, ["N", 2]) for name, kind in NUMBERS.items()]
    same = [node("Identity", [name], [f"{name}-out"]) for name in NUMBERS]
    outs = [value(f"{name}-out", kind, ["N", 2]) for name, kind in NUMBERS.items()]
    save(folder / "types.onnx", same, (every, outs))
    any_x, any_y = value("x", T.FLOAT, None), value("y", T.FLOAT, None)
    save(folder / "identity.onnx", [node("Identity", ["x"], ["y"])], ([any_x], [any_y]))
    free = [value(name, T.FLOAT, [None, None]) for name in ("x", "y")]
    save(folder / "free.onnx", [node("Identity", ["x"], ["y"])], (free[:1], free[1:]))
    halves = [value(name, T.FLOAT16, ["N", 2]) for name in ("x", "y")]
    save(folder / "halves.onnx", [node("Identity", ["x"], ["y"])], (halves[:1], halves[1:]))
    bits = [value(name, T.BFLOAT16, ["N", 2]) for name in ("x", "y")]
    save(folder / "bfloat16.onnx", [node("Identity", ["x"], ["y"])], (bits[:1], bits[1:]))
    # The rows come out as the second axis.
    turned = [value("x", T.FLOAT, ["N", "M"]), value("y", T.FLOAT, ["M", "N"])]
    save(folder / "transposed.onnx", [node("Transpose", ["x"], ["y"])], (turned[:1], turned[1:]))
    both = [node("Relu", ["x"], ["y"]), node("SequenceConstruct", ["x", "y"], ["s"])]
    sequence = helper.make_tensor_sequence_value_info("s", T.FLOAT, None)
    save(folder / "sequence.onnx", both, ([x], [value("y", T.FLOAT, ["N", 4]), sequence]))
    fixed = [value(name, T.FLOAT, [2, 4]) for name in ("x", "y")]
    save(folder / "fixed.onnx", [node("Relu", ["x"], ["y"])], (fixed[:1], fixed[1:]))
    # An input with a default: the initializer of that name.
    one = numpy_helper.from_array(np.ones(1, np.float32), "d")
    add = [node("Add", ["x", "d"], ["y"])]
    ends = ([x, value("d", T.FLOAT, [1])], [value("y", T.FLOAT, ["N", 4])])
    save(folder / "default.onnx", add, ends, one)
    # Fits only some numbers of rows, which shows when it runs.
    shape = numpy_helper.from_array(np.array([3, 4], np.int64), "r")
    reshape = [node("Reshape", ["x", "r"], ["y"])]
    save(folder / "reshape.onnx", reshape, ([x], [any_y]), shape)
    save(folder / "unknown.onnx", [node("NoSuchOperator", ["x"], ["y"])], ([x], [y]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
