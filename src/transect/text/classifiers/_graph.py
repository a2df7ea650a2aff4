"""The ONNX graph of classifiers whose logits are a sum over words: one row of a table for each.

`x` (batch, length) int64, 0 for padding, to `probabilities` (batch, classes) float32. Sum over places
of `table[x]`, divided by the number of words, or by the norm of the counts times `factors`; plus
`bias`; softmax. Operators of opset 13 on numbers alone: every runtime has them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from transect.domain.files import write_atomic
from transect.onnx_models.graph_writer import GraphWriter, value_info

OPSET = 17
# As `onnx` would number it by itself is newer than some runtimes read.
_IR = 8


class Pairs(NamedTuple):
    """Rows `first` on of the table are those of pairs of neighbours: (a `factor` + b) mod `rows` of them."""

    first: int
    rows: int
    factor: int


def write_table_graph(
    path: Path, table: np.ndarray, bias: np.ndarray, *, factors: np.ndarray | None = None, pairs: Pairs | None = None
) -> None:
    """Write the graph. `table` (rows, classes), `bias` (classes,), `factors` (rows,) float."""
    import onnx

    graph = onnx.GraphProto(name="classifier")
    writer = GraphWriter(graph, "classifier")
    node, constant = writer.node, writer.constant
    writer.input("x", "int64", ("batch", "length"))
    table = np.array(table, np.float32)
    table[0] = 0
    rows, places = constant(table, "float32"), constant([1], "int64")
    there = writer.cast(node("Not", node("Equal", "x", constant(0, "int64"))), "float32")
    total = node("ReduceSum", node("Gather", rows, "x"), places, keepdims=0)
    words = node("ReduceSum", there, places, keepdims=1)
    if pairs is not None:
        more, count = _pairs(writer, pairs, there, rows)
        total, words = node("Add", total, more), node("Add", words, count)
    if factors is not None:
        words = _norm(writer, factors)
    words = node("Max", words, constant(1 if factors is None else 1e-30, "float32"))
    logits = node("Add", node("Div", total, words), constant(bias, "float32"))
    writer.name_outputs({"probabilities": node("Softmax", logits, axis=-1)})
    graph.output.append(value_info("probabilities", "float32", ("batch", table.shape[1])))
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=_IR, producer_name="transect"
    )
    onnx.checker.check_model(model)
    write_atomic(path, model.SerializeToString())


def _norm(writer: GraphWriter, factors: np.ndarray) -> str:
    """Add sqrt(sum over words w of (count(w) factor(w))^2), (batch, 1).

    As a sum over pairs of equal places: sum over j, k of [x_j = x_k] factor(x_j)^2. No array is as
    long as the vocabulary.
    """
    node = writer.node
    places, behind = writer.constant([1], "int64"), writer.constant([2], "int64")
    same = node("Equal", node("Unsqueeze", "x", behind), node("Unsqueeze", "x", places))
    counts = node("ReduceSum", writer.cast(same, "float32"), behind, keepdims=0)
    squares = node("Mul", counts, node("Gather", writer.constant(np.square(factors), "float32"), "x"))
    return node("Sqrt", node("ReduceSum", squares, places, keepdims=1))


def _pairs(writer: GraphWriter, pairs: Pairs, there: str, table: str) -> tuple[str, str]:
    """Add the sum of the rows of neighbouring words (batch, classes), and their number (batch, 1)."""
    node = writer.node
    begin, second, last, end = (writer.constant([at], "int64") for at in (0, 1, -1, np.iinfo(np.int64).max))
    factor, rows, first = (writer.constant(value, "int64") for value in (pairs.factor, pairs.rows, pairs.first))
    left, right = node("Slice", "x", begin, last, second), node("Slice", "x", second, end, second)
    row = node("Add", node("Mod", node("Add", node("Mul", left, factor), right), rows), first)
    # Words come first: the right one of a pair is there only if the left one is.
    is_pair = node("Slice", there, second, end, second)
    row = node("Mul", row, writer.cast(is_pair, "int64"))
    total = node("ReduceSum", node("Gather", table, row), second, keepdims=0)
    return total, node("ReduceSum", is_pair, second, keepdims=1)
