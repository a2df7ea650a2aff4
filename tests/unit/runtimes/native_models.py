"""Writes the models of test_runner_native.py: run by the environment of torch, which has onnx.

`python native_models.py FOLDER DTYPE...`, the types that tensors may have.
"""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}


def _end(name, dtype="float32", shape=("n", 4)):
    kind = getattr(TensorProto, NAMES.get(dtype, dtype.upper()))
    return helper.make_tensor_value_info(name, kind, shape)


def _identities(ends):
    """Return nodes, inputs and outputs of a model that hands on each end as NAME_out."""
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name, _, _ in ends]
    outputs = [_end(f"{name}_out", dtype, shape) for name, dtype, shape in ends]
    return nodes, [_end(*end) for end in ends], outputs


def _models(dtypes):
    """Yield name, nodes, inputs, outputs, and weights by name."""
    node = helper.make_node
    x, y = _end("x"), _end("y")
    yield "types", *_identities([(dtype, dtype, ("n", "m")) for dtype in dtypes]), {}
    for dtype in dtypes:
        yield f"scalar-{dtype}", *_identities([("x", dtype, ())]), {}
    yield "relu", [node("Relu", ["x"], ["y"])], [x], [y], {}
    yield (
        "default",
        [node("Add", ["x", "b"], ["y"]), node("Identity", ["k"], ["l"])],
        [x, _end("b", shape=(4,)), _end("k", "int64", ("n",))],
        [y, _end("l", "int64", ("n",))],
        {"b": np.full(4, 10, np.float32)},
    )
    yield ("total", [node("ReduceSum", ["x", "axes"], ["y"])], [x], [_end("y", shape=(1, 4))], {"axes": np.array([0])})
    # No number of rows makes 7 columns: found when it runs.
    yield ("fails", [node("Reshape", ["x", "to"], ["y"])], [x], [_end("y", shape=("m", 7))], {"to": np.array([-1, 7])})
    classes = node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[2, 3, 5, 7])
    of_map = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(1, None))
    kind = helper.make_sequence_type_proto(of_map)
    yield "classes", [classes], [x], [helper.make_value_info("y", kind)], {}
    cast = node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E4M3FN)
    yield "float8", [cast], [x], [_end("y", "float8e4m3fn")], {}
    yield "pairs", [node("Relu", ["x"], ["y"])], [_end("x", shape=(2, 4))], [y], {}
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))
    taken = node("SequenceAt", ["x", "at"], ["y"])
    yield "sequence", [taken], [helper.make_value_info("x", kind)], [y], {"at": np.array(0)}
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
    absent = helper.make_value_info("o", helper.make_optional_type_proto(tensor))
    nodes = [node("Optional", [], ["o"], type=tensor), node("Relu", ["x"], ["y"])]
    yield "absent", nodes, [x], [y, absent], {}


def main(folder: Path, dtypes: list[str]) -> None:
    """Write them all."""
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("ai.onnx.ml", 3)]
    for name, nodes, inputs, outputs, weights in _models(dtypes):
        stored = [numpy_helper.from_array(value, key) for key, value in weights.items()]
        graph = helper.make_graph(nodes, name, inputs, outputs, stored)
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        save(model, folder / f"{name}.onnx")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
