"""What `records.parquet` holds: each column with its type, unit and meaning, and the version of all that.

The file says its version under `VERSION_KEY`. Within a version, columns and metrics may come along, and a reader ignores
what it does not know. The number goes up by one when a column goes or is renamed, when its type, unit or meaning is another
one, or when a row is something else than a record's metric; `EARLIER` then says in what the version before differed, and
`transect query` goes on reading it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Type = Literal["text", "integer", "number"]

VERSION = 1
VERSION_KEY = b"transect.records.version"

# Versions that are read besides, and what is other about them.
EARLIER = {0: "written before versions were: the file tells none; columns are the same, some may be missing"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column: `unit` is empty where it has none, or a row says it in another column."""

    name: str
    type: Type
    meaning: str
    unit: str = ""


def _text(name: str, meaning: str) -> Column:
    return Column(name=name, type="text", meaning=meaning)


def _integer(name: str, meaning: str, unit: str = "1") -> Column:
    return Column(name=name, type="integer", meaning=meaning, unit=unit)


# Always there, in this order.
ALWAYS = (
    _text("study", "the study that the record is of"),
    _text("stage", "the kind of work, such as `train` or `infer`"),
    _text("cell", "the cell's id; with its stage it names the folder of the record"),
    _text("workload", "data, model, hyper-parameters and target"),
    _text("framework", "who computes gradients"),
    _text("strategy", "how ranks work together"),
    _text("runtime", "who executes the ONNX file"),
    _text("provider", "the runtime's execution provider"),
    _text("exporter", "who wrote the ONNX file"),
    _text("benchmark", "the benchmark that ran"),
    _text("source", "the logs that were read: a name that the study gives their path"),
    _text("device", "`cpu` or `cuda`"),
    _integer("nodes", "nodes of the cell"),
    _integer("ranks", "processes that work together, on all nodes"),
    _integer("threads", "threads of a process"),
    _integer("batch", "samples of a batch: of all ranks of a training together, of one call, or of one micro-batch"),
    _text("precision", "of the numbers that are computed with, such as `fp32`"),
    _text("network", "the network that the study chose"),
    _text("container", "who ran it in an image"),
    _text("reduce", "what the gradients of ranks become: `mean` or `sum`"),
    _text("learning_rate_rule", "how the learning rate follows the ranks: `none` or `linear`"),
    _text("input", "where batches come from: `stored`, `files` or `synthetic`"),
    _text(
        "hyperparameters", "of a training and its reference, in place of the workload's own: `NAME=VALUE NAME=VALUE`"
    ),
    _text("options", "options as `NAME=VALUE NAME=VALUE`; of an inference the name of a set of session options"),
    _text("memory", "what becomes of activations between the passes"),
    _integer("memory_budget", "memory that activations may take", "B"),
    _integer("shards", "parts in which the reference cuts each batch, as ranks do"),
    _integer("repeat", "which repeat, from 0"),
    _text("status", "`ok`, `skipped` or `failed`"),
    _text("cause", "why it is not `ok`, of a closed list ([the record](record.md))"),
    _text("metric", "the metric's name ([metrics](metrics.md)); null where the record has none"),
    _text("label", "tells several values of one metric apart"),
    Column(name="value", type="number", meaning="the value, in the `unit` of its row"),
    _text("unit", "the unit of `value`; `1` for shares and counts"),
    _text("direction", "which values are better: `higher`, `lower` or `neutral`"),
)

# Axes of stages that few studies have: a table has those that its records have, in the order of their names.
FURTHER = (
    _integer("accumulate", "micro-batches of a retraining's step"),
    _text("accumulates", "`True` where an exported step can add up micro-batches"),
    _text("aggregation", "what a server makes of its clients' updates"),
    _integer("base_epochs", "epochs that the retrained model was trained before; null: a whole training"),
    _integer("buffer", "updates that a server waits for while others go on; null: for all of a round"),
    _integer("clients", "clients of a federation"),
    Column(name="clip", type="number", unit="1", meaning="largest norm of all gradients together; null: none"),
    _integer("cohort", "clients that train at once"),
    _text("corpus", "the tickets that were read"),
    _text("embeddings", "how words become vectors: a name of the study"),
    _text("engine", "who computes the turns of clients"),
    _integer("epochs", "epochs of a classifier's training"),
    _integer("heads", "attention heads of a classifier"),
    _text("kind", "the classifier's kind"),
    _integer("layers", "layers of a classifier"),
    Column(name="learning_rate", type="number", unit="1", meaning="learning rate of a classifier"),
    Column(name="load", type="number", unit="1/s", meaning="requests offered; null: one call after another"),
    _text("loader", "who read the ONNX file again"),
    _integer("local_steps", "steps of a client's turn"),
    _text("method", "what clients of a federation do besides plain local steps"),
    _text("method_options", "options of the method as `NAME=VALUE NAME=VALUE`"),
    _integer("micro_batches", "micro-batches in which the reference cuts each part, as pipelines do"),
    _text("model", "the classifier: a name of the study"),
    _text("names", "what becomes of people's names in tickets: `kept`, `pseudonyms` or `removed`"),
    _text("optimiser", "the optimiser of a retraining or of a classifier"),
    _text("partition", "which client has which samples"),
    _integer("place", "which point of a search's rung, from 0"),
    _text("proximal", "`True` where an exported step can be pulled to an anchor"),
    _text("rate", "the learning rate of a retraining: a name of the study"),
    _integer("rounds", "updates of a federation's server"),
    _integer("rung", "which rung of a search, from 0"),
    _text("search", "the search: a name of the study"),
    _integer("sessions", "sessions that serve at a time"),
    Column(name="slowness", type="number", unit="1", meaning="sigma of the lognormal durations of clients' turns"),
    _text("split", "which tickets train: a name of the study"),
    _integer("steps", "updates of a retraining"),
    _text("stop_words", "`True` where stop words stay"),
    _integer("together", "ranks of its node that a memory plan counts with"),
    _integer("updates", "updates of a classifier's training, where batches are compared"),
    _text("view", "what of a ticket is read: `conversation` or `first`"),
    _text("words", "how many words of a ticket are read: a name of the study"),
)

COLUMNS = {column.name: column for column in (*ALWAYS, *FURTHER)}
