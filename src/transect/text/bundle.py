"""A classifier with its tokeniser in one ONNX file, and what else is needed to use it.

`predict.onnx`: `text` (batch, bytes) uint8, UTF-8 filled up with zeros, to `probabilities` (batch,
classes) float32. `pipeline.json`: what was done to a text before, and what the classes are called.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from transect.domain.errors import BadInput
from transect.domain.files import sha256_file, write_atomic
from transect.onnx_models.graph_writer import value_info
from transect.text.lexicon import Lexicon
from transect.text.onnx_tokeniser import add_tokeniser

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

MODEL, PIPELINE = "predict.onnx", "pipeline.json"
# What the bundle takes and gives; what a classifier takes in between is named by its own input.
_TEXT, _PROBABILITIES = "text", "probabilities"


class Pipeline(BaseModel):
    """The `pipeline.json` of a model: how texts are prepared, and what its outputs mean."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    # Of predict.onnx: the two belong together.
    sha256: str
    classes: list[str] = Field(min_length=1)
    # Words that are read of a text, stop words left out.
    length: int = Field(ge=1)
    # Of a ticket, before it is UTF-8 in the form NFC.
    view: Literal["conversation", "first"] = "conversation"
    names: Literal["kept", "pseudonyms", "removed"] = "kept"
    redact: bool = False
    replies: Literal["drop", "keep"] = "drop"
    signatures: Literal["drop", "keep"] = "drop"
    normalisation: Literal["NFC"] = "NFC"
    # The version of Unicode whose letters the model's are.
    letters: str
    words: int = Field(ge=0)
    stop_words: int = Field(ge=0)
    # A text whose likeliest class is less likely is unsure.
    unsure: float = Field(default=0.5, ge=0, le=1)
    # What the classifier is and was trained on, in the words of who made it.
    about: dict[str, Any] = {}


def write_bundle(
    folder: Path,
    model_onnx: Path,
    vocabulary: Mapping[str, Any],
    classes: Sequence[str],
    length: int,
    details: Mapping[str, Any],
) -> Pipeline:
    """Write `predict.onnx` and `pipeline.json` into `folder`; `onnx` is needed.

    `model_onnx` takes word numbers (batch, length) and gives `probabilities`; where its length is no
    fixed number, columns of padding must change nothing. `vocabulary` is what a vocabulary.json holds; `details`: fields of `Pipeline` that say how texts are made ready, `unsure`, and
    anything about the classifier as `about`. Raises BadInput for letters of another Unicode.
    """
    import onnx

    letters = vocabulary["letters"]
    if letters != unicodedata.unidata_version:
        raise BadInput(
            f"the vocabulary's letters are those of Unicode {letters}: expected "
            f"{unicodedata.unidata_version}, which this Python has"
        )
    lexicon = Lexicon.of(vocabulary["words"], vocabulary["stop_words"])
    model = onnx.load(model_onnx)
    joined = _joined(model, lexicon, length)
    onnx.checker.check_model(joined, full_check=True)
    write_atomic(folder / MODEL, joined.SerializeToString())
    pipeline = Pipeline(
        sha256=sha256_file(folder / MODEL),
        classes=list(classes),
        length=length,
        letters=letters,
        words=len(vocabulary["words"]),
        stop_words=len(vocabulary["stop_words"]),
        **details,
    )
    text = json.dumps(pipeline.model_dump(), ensure_ascii=False, indent=1, allow_nan=False)
    write_atomic(folder / PIPELINE, text + "\n")
    return pipeline


def read_bundle(path: Path) -> tuple[Path, Pipeline]:
    """Return the model of a folder, or of a file with `pipeline.json` beside it, and its pipeline.

    Raises BadInput where one is missing, or the two do not belong together.
    """
    model = path / MODEL if path.is_dir() else path
    beside = model.with_name(PIPELINE)
    for file in (model, beside):
        if not file.is_file():
            raise BadInput(
                f"{file}: no such file; expected {MODEL} and {PIPELINE}, as cells of classifiers that export have them"
            )
    try:
        pipeline = Pipeline.model_validate_json(beside.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise BadInput(f"{beside}: {where}: {first['msg']}") from None
    if sha256_file(model) != pipeline.sha256:
        raise BadInput(f"{model}: not the file that {beside} was written for: its sha256 differs")
    return model, pipeline


def tokeniser_graph(lexicon: Lexicon, length: int, numbers: str, *, narrow: bool = False) -> GraphProto:
    """Return the tokeniser alone: `text` to `numbers` (batch, length) int64; see `add_tokeniser`."""
    from onnx import GraphProto, helper

    graph = GraphProto(name="tokeniser")
    graph.input.append(value_info(_TEXT, "uint8", ("batch", "bytes")))
    made = add_tokeniser(graph, _TEXT, lexicon, length, narrow=narrow)
    graph.node.append(helper.make_node("Identity", [made], [numbers], name=numbers))
    graph.output.append(value_info(numbers, "int64", ("batch", "length" if narrow else length)))
    return graph


def _joined(model: ModelProto, lexicon: Lexicon, length: int) -> ModelProto:
    """Return the model behind its tokeniser."""
    from onnx import compose

    (taken,) = model.graph.input

    # An exporter may call its values anything, `text` among them.
    prefix = "classifier/"
    model = compose.add_prefix(model, prefix, rename_outputs=False, rename_functions=False)
    # What takes any length gets no column that all texts leave empty.
    narrow = not taken.type.tensor_type.shape.dim[1].dim_value
    before = tokeniser_graph(lexicon, length, prefix + taken.name, narrow=narrow)
    graph = model.graph
    nodes, inputs = [*before.node, *graph.node], list(before.input)
    del graph.node[:], graph.input[:]
    graph.node.extend(nodes)
    graph.input.extend(inputs)
    graph.initializer.extend(before.initializer)
    return model
