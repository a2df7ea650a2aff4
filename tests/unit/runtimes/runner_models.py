"""Makes the models of the tests of the runners in other languages than Python; run where onnx is.

`python runner_models.py FOLDER DTYPE...`, the types that tensors may have.
"""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
from onnx.helper import make_node as node

NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}
WEIGHT = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
# What a language cannot be given.
LACKING = {"java": ("uint16", "uint32", "uint64"), "javascript": ("bfloat16",)}


def _end(name, dtype="float32", shape=("N", 4)):
    return helper.make_tensor_value_info(name, getattr(TensorProto, NAMES.get(dtype, dtype.upper())), shape)


def _identities(ends):
    """Return nodes, inputs and outputs of a model that hands on each end as NAME_out."""
    nodes = [node("Identity", [name], [f"{name}_out"]) for name, _, _ in ends]
    return nodes, [_end(*end) for end in ends], [_end(f"{name}_out", *rest) for name, *rest in ends]


def _models(dtypes):
    """Yield name, nodes, inputs, outputs, and weights by name."""
    x, y = _end("x"), _end("y")
    linear = [node("MatMul", ["x", "w"], ["m"]), node("Relu", ["m"], ["y"])]
    yield "linear", linear, [x], [_end("y", shape=("N", 3))], {"w": WEIGHT}
    for language, lacking in {"": (), **LACKING}.items():
        ends = [(dtype, dtype, ("N", "M")) for dtype in dtypes if dtype not in lacking]
        yield f"types{language and '-' + language}", *_identities(ends), {}
    for dtype in dtypes:
        yield f"scalar-{dtype}", *_identities([("x", dtype, ())]), {}
        yield f"identity-{dtype}", *_identities([("x", dtype, ("N", "M"))]), {}
    yield "any", [node("Identity", ["x"], ["y"])], [_end("x", shape=None)], [_end("y", shape=None)], {}
    # The rows come out as the second axis.
    turned = [_end("x", shape=("N", "M"))], [_end("y", shape=("M", "N"))]
    yield "transposed", [node("Transpose", ["x"], ["y"])], *turned, {}
    yield (
        "default",
        [node("Add", ["x", "b"], ["y"]), node("Identity", ["k"], ["l"])],
        [x, _end("b", shape=(4,)), _end("k", "int64", ("N",))],
        [y, _end("l", "int64", ("N",))],
        {"b": np.full(4, 10, np.float32)},
    )
    # No number of rows makes 7 columns, but 7: found when it runs.
    yield "fails", [node("Reshape", ["x", "to"], ["y"])], [x], [_end("y", shape=("M", 7))], {"to": np.array([-1, 7])}
    # As many columns as the first number of a batch says.
    ragged = [
        node("Gather", ["x", "zero"], ["row"]),
        node("Gather", ["row", "zero"], ["first"]),
        node("Cast", ["first"], ["columns"], to=TensorProto.INT64),
        node("Unsqueeze", ["columns", "at"], ["axis"]),
        node("Shape", ["x"], ["rows"], start=0, end=1),
        node("Concat", ["rows", "axis"], ["shape"], axis=0),
        node("Gather", ["x", "at"], ["column"], axis=1),
        node("Expand", ["column", "shape"], ["y"]),
    ]
    numbers = {"zero": np.array(0), "at": np.array([0])}
    yield "ragged", ragged, [_end("x", shape=("N", "M"))], [_end("y", shape=("N", "K"))], numbers
    wide = (1, 1, 1, 1, 1, 1, 4)
    to = np.array([-1, *wide])
    yield "wide", [node("Reshape", ["x", "to"], ["y"])], [x], [_end("y", shape=("N", *wide))], {"to": to}
    yield "pairs", [node("Relu", ["x"], ["y"])], [_end("x", shape=(2, 4))], [_end("y", shape=(2, 4))], {}
    yield "unknown", [node("NoSuchOperator", ["x"], ["y"])], [x], [y], {}
    yield "float8", [node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E4M3FN)], [x], [_end("y", "float8e4m3fn")], {}
    many = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))
    taken = node("SequenceAt", ["x", "at"], ["y"])
    yield "takes-sequence", [taken], [helper.make_value_info("x", many)], [y], {"at": np.array(0)}
    given = [node("Relu", ["x"], ["y"]), node("SequenceConstruct", ["x", "y"], ["s"])]
    yield "gives-sequence", given, [x], [y, helper.make_value_info("s", many)], {}
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N"])
    absent = helper.make_value_info("o", helper.make_optional_type_proto(tensor))
    yield "absent", [node("Optional", [], ["o"], type=tensor), node("Relu", ["x"], ["y"])], [x], [y, absent], {}
    yield (
        "constant-text",
        [node("Identity", ["w"], ["y"])],
        [],
        [_end("y", "string", (1,))],
        {"w": ["\N{GRINNING FACE}"]},
    )


def _stored(name, value):
    if isinstance(value, list):
        return helper.make_tensor(name, TensorProto.STRING, [len(value)], [text.encode() for text in value])
    return numpy_helper.from_array(value, name)


def main(folder: Path, dtypes: list[str]) -> None:
    """Write them all, and one with its weights in a file of their own."""
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("ai.onnx.ml", 3)]
    for name, nodes, inputs, outputs, weights in _models(dtypes):
        graph = helper.make_graph(nodes, name, inputs, outputs, [_stored(*entry) for entry in weights.items()])
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        save(model, folder / f"{name}.onnx")
        if name == "linear":
            external = {"save_as_external_data": True, "location": "external.data", "size_threshold": 0}
            save(model, folder / "external.onnx", **external)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
