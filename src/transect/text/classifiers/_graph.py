"""The ONNX graph of classifiers whose logits are a sum over words: one row of a table for each.

`x` (batch, length) int64, 0 for padding, to `probabilities` (batch, classes) float32. Sum over places
of `table[x]`, divided by the number of words, or by the norm of the counts times `factors`; plus
`bias`; softmax. Operators of opset 13 on numbers alone: every runtime has them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.files import write_atomic

OPSET = 17
# As `onnx` would number it by itself is newer than some runtimes read.
_IR = 8


class Pairs:
    """Rows `first` on of the table are those of pairs of neighbours: (a `factor` + b) mod `rows` of them."""

    def __init__(self, first: int, rows: int, factor: int) -> None:
        self.first, self.rows, self.factor = first, rows, factor


def write_table_graph(
    path: Path, table: np.ndarray, bias: np.ndarray, *, factors: np.ndarray | None = None, pairs: Pairs | None = None
) -> None:
    """Write the graph. `table` (rows, classes), `bias` (classes,), `factors` (rows,) float."""
    import onnx
    from onnx import TensorProto, helper

    graph = _Graph()
    table = np.array(table, np.float32)
    table[0] = 0
    graph.constant("table", table)
    graph.constant("bias", bias.astype(np.float32))
    graph.constant("zero", np.array(0, np.int64))
    graph.constant("places", np.array([1], np.int64))
    there = graph.node("Cast", graph.node("Not", graph.node("Equal", "x", "zero")), to=TensorProto.FLOAT)
    total = graph.node("ReduceSum", graph.node("Gather", "table", "x"), "places", keepdims=0)
    words = graph.node("ReduceSum", there, "places", keepdims=1)
    if pairs is not None:
        more, count = _pairs(graph, pairs, there)
        total, words = graph.node("Add", total, more), graph.node("Add", words, count)
    if factors is not None:
        words = _norm(graph, factors)
        graph.constant("least", np.array(1e-30, np.float32))
    else:
        graph.constant("least", np.array(1, np.float32))
    logits = graph.node("Add", graph.node("Div", total, graph.node("Max", words, "least")), "bias")
    graph.node("Softmax", logits, axis=-1, output="probabilities")
    made = helper.make_graph(
        graph.nodes,
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", table.shape[1]])],
        graph.constants,
    )
    model = helper.make_model(
        made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR, producer_name="transect"
    )
    onnx.checker.check_model(model)
    write_atomic(path, model.SerializeToString())


class _Graph:
    """Nodes and constants on their way into a graph."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: np.ndarray) -> None:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(value, name))

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        from onnx import helper

        output = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output


def _norm(graph: _Graph, factors: np.ndarray) -> str:
    """Add sqrt(sum over words w of (count(w) factor(w))^2), (batch, 1).

    As a sum over pairs of equal places: sum over j, k of [x_j = x_k] factor(x_j)^2. No array is as
    long as the vocabulary.
    """
    from onnx import TensorProto

    graph.constant("squares", np.square(factors).astype(np.float32))
    graph.constant("behind", np.array([2], np.int64))
    same = graph.node("Equal", graph.node("Unsqueeze", "x", "behind"), graph.node("Unsqueeze", "x", "places"))
    counts = graph.node("ReduceSum", graph.node("Cast", same, to=TensorProto.FLOAT), "behind", keepdims=0)
    squares = graph.node("Mul", counts, graph.node("Gather", "squares", "x"))
    return graph.node("Sqrt", graph.node("ReduceSum", squares, "places", keepdims=1))


def _pairs(graph: _Graph, pairs: Pairs, there: str) -> tuple[str, str]:
    """Add the sum of the rows of neighbouring words (batch, classes), and their number (batch, 1)."""
    from onnx import TensorProto

    ends = {"from_0": 0, "from_1": 1, "to_last": -1, "to_end": np.iinfo(np.int64).max}
    for name, value in ends.items():
        graph.constant(name, np.array([value], np.int64))
    for name, number in (("factor", pairs.factor), ("rows", pairs.rows), ("first", pairs.first)):
        graph.constant(name, np.array(number, np.int64))
    left = graph.node("Slice", "x", "from_0", "to_last", "places")
    right = graph.node("Slice", "x", "from_1", "to_end", "places")
    mixed = graph.node("Add", graph.node("Mul", left, "factor"), right)
    row = graph.node("Add", graph.node("Mod", mixed, "rows"), "first")
    # Words come first: the right one of a pair is there only if the left one is.
    is_pair = graph.node("Slice", there, "from_1", "to_end", "places")
    row = graph.node("Mul", row, graph.node("Cast", is_pair, to=TensorProto.INT64))
    total = graph.node("ReduceSum", graph.node("Gather", "table", row), "places", keepdims=0)
    return total, graph.node("ReduceSum", is_pair, "places", keepdims=1)
