"""Writes the bundle of test_predict.py: run by the environment of torch, which has onnx.

`python predict_models.py FOLDER` with FOLDER/made.json: `words`, `stop_words`, `length`, `classes`;
FOLDER/table.npy, a row of logits for each word number. Leaves numbers.onnx and narrow.onnx (the tokeniser
alone, with as many columns as are told and as are needed), predict.onnx, pipeline.json and refusal.
"""

import json
import sys
import unicodedata
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper, save

from transect.domain.errors import BadInput
from transect.onnx_models.graph_writer import value_info
from transect.text.bundle import tokeniser_graph, write_bundle
from transect.text.lexicon import Lexicon

OPSET, IR = 17, 8


def _save(graph, path, opset=OPSET):
    imports = [helper.make_opsetid("", opset)]
    save(helper.make_model(graph, opset_imports=imports, ir_version=IR), path)


def _classifier(table):
    """Return the softmax of the sum of a row of `table` for each word. It has a value called `text`."""
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["text"]),
        helper.make_node("ReduceSum", ["text", "axes"], ["logits"], keepdims=0),
        helper.make_node("Softmax", ["logits"], ["probabilities"]),
    ]
    stored = {"table": table, "axes": np.array([1])}
    return helper.make_graph(
        nodes,
        "classifier",
        [value_info("x", "int64", ("batch", "length"))],
        [value_info("probabilities", "float32", ("batch", table.shape[1]))],
        [numpy_helper.from_array(value, name) for name, value in stored.items()],
    )


def main(folder: Path) -> None:
    """Write them all."""
    made = json.loads((folder / "made.json").read_text())
    table = np.load(folder / "table.npy")
    length, classes = made["length"], made["classes"]
    lexicon = Lexicon.of(made["words"], made["stop_words"])
    for name, narrow in (("numbers", False), ("narrow", True)):
        graph = tokeniser_graph(lexicon, length, "numbers", narrow=narrow)
        _save(graph, folder / f"{name}.onnx")
    vocabulary = {"words": made["words"], "stop_words": made["stop_words"], "letters": unicodedata.unidata_version}
    model = folder / "model.onnx"
    _save(_classifier(table), model)
    details = {"view": "first", "names": "removed", "redact": True, "unsure": 0.6, "about": {"kind": "made up"}}
    write_bundle(folder, model, vocabulary, classes, length, details)
    try:
        write_bundle(folder / "refused", model, vocabulary | {"letters": "3.0.0"}, classes, length, {})
    except BadInput as error:
        (folder / "refusal").write_text(str(error))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
