"""Generate the pages of docs/ that repeat what the code says.

`python scripts/generate-docs.py` writes them; `--check` exits 1 and names those that are stale.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from transect.domain import study, system
from transect.domain.files import write_if_changed
from transect.domain.metrics import METRICS
from transect.domain.paths import ROOT
from transect.domain.record import Record
from transect.domain.registry import Registry
from transect.execution.stages import STAGES
from transect.hpc.base import PARSERS
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.launch import LAUNCHERS
from transect.launch.rendezvous import RENDEZVOUS
from transect.onnx_models.exporters import EXPORTERS
from transect.runtimes import RUNTIMES
from transect.training.datasets import DATASETS
from transect.training.frameworks import FRAMEWORKS
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS, Parameters

DOCS = ROOT / "docs"
_NOTE = "<!-- Made by scripts/generate-docs.py from the code: edit that, then `make docs`. -->"
_KEYS_START = "<!-- generated keys: start -->"
_KEYS_END = "<!-- generated keys: end -->"

_REGISTRIES: tuple[Registry[Any], ...] = (
    FRAMEWORKS, STRATEGIES, WORKLOADS, DATASETS, EXPORTERS, RUNTIMES, PARSERS, BENCHMARKS,
    LAUNCHERS, RENDEZVOUS, STAGES,
)  # fmt: skip

_MODELS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("A study", "", study.Study),
    ("limits", "limits", study.Limits),
    ("train", "train", study.Train),
    ("train.grids", "train.grids[]", study.TrainGrid),
    ("export", "export", study.Export),
    ("infer", "infer", study.Infer),
    ("infer.grids", "infer.grids[]", study.InferGrid),
    ("bench", "bench", study.Bench),
    ("bench.grids", "bench.grids[]", study.BenchGrid),
    ("ingest", "ingest", study.Ingest),
    ("workloads.NAME", "workloads.NAME", Parameters),
    ("A system", "", system.System),
    ("networks.NAME", "networks.NAME", system.Network),
    ("environments.NAME", "environments.NAME", system.EnvironmentChoice),
)

# What a field means where the model itself does not say: a description in the model wins.
_MEANINGS = {
    "Study.name": "names the folder `results/NAME`",
    "Study.title": "heading of the report; the name when empty",
    "Study.questions": "what the report is to answer; shown at its top",
    "Study.seed": "of the split, initial weights, batch order and order of cells",
    "Study.limits": "what one cell may use",
    "Study.workloads": "hyper-parameters that replace a workload's own, by workload",
    "Study.train": "training cells",
    "Study.export": "ONNX exports",
    "Study.infer": "inference cells",
    "Study.bench": "benchmarks that are run",
    "Study.ingest": "logs of benchmarks that ran elsewhere",
    "Limits.seconds": "wall-clock time of one cell's payload",
    "TrainGrid.workloads": "names from [plugins.md](plugins.md#workload)",
    "TrainGrid.frameworks": "names from [plugins.md](plugins.md#framework)",
    "TrainGrid.strategies": "names from [plugins.md](plugins.md#strategy)",
    "TrainGrid.ranks": "ranks per node",
    "TrainGrid.nodes": "nodes; more than one needs a launcher that can",
    "TrainGrid.threads": "threads per rank",
    "TrainGrid.precisions": "`fp32` or `fp64`, as the framework supports",
    "TrainGrid.device": "`cpu` or `cuda`",
    "Train.repeats": "runs of each cell, each with its own initial weights and batch order",
    "Train.grids": "see below",
    "Export.workloads": "each must be trained by `framework` with `single` on one CPU rank, one thread",
    "Export.framework": "whose weights are exported",
    "Export.exporters": "names from [plugins.md](plugins.md#exporter)",
    "InferGrid.workloads": "each must stand in `export.workloads`",
    "InferGrid.runtimes": "names from [plugins.md](plugins.md#runtime)",
    "InferGrid.exporters": "each must stand in `export.exporters`; not used by runtimes without ONNX",
    "InferGrid.providers": "`cpu` or `cuda`",
    "InferGrid.batches": "samples per call",
    "InferGrid.threads": "intra-operator threads",
    "Infer.repeats": "runs of each cell",
    "Infer.warmup": "calls before the measurement, thrown away",
    "Infer.min_runs": "least number of timed calls",
    "Infer.max_seconds": "cap on the timed part, once `min_runs` are done",
    "Infer.grids": "see below",
    "BenchGrid.benchmarks": "names from [plugins.md](plugins.md#benchmark)",
    "BenchGrid.threads": "threads",
    "BenchGrid.ranks": "ranks on each node",
    "Bench.repeats": "runs of each cell",
    "Bench.grids": "see below",
    "Ingest.paths": "files or folders, relative to the study file",
    "Parameters.epochs": "passes over the training part",
    "Parameters.learning_rate": "of SGD",
    "Parameters.momentum": "v = momentum v + g; w -= learning_rate v",
    "Parameters.weight_decay": "g += weight_decay w",
    "Parameters.loss": "mean over the batch; `mse` is half the squared distance to one-hot",
    "Parameters.test_fraction": "share of each class that is kept for testing",
    "Parameters.dataset_options": "passed to the dataset's `load`",
    "System.name": "names the system",
    "System.description": "for people",
    "System.gpus_per_node": "cells that need more are refused",
    "System.account": "`sbatch --account`",
    "System.partition": "`sbatch --partition`; null: the cluster's default",
    "System.qos": "`sbatch --qos`",
    "System.constraint": "`sbatch --constraint`",
    "System.interconnect": "for people",
    "System.scheduler": "`slurm` puts cells into jobs",
    "Network.description": "for people",
    "BenchGrid.nodes": "nodes; ranks are on each",
    "BenchGrid.networks": "as in training grids",
}


def _cell(text: object) -> str:
    """Escape what would end a table's cell."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n", 1)[0]


def _plugin_rows(registry: Registry[Any]) -> list[list[str]]:
    rows = []
    for name in registry:
        source = registry.source(name)
        # A plug-in folder of this process is not part of the repository.
        if not source.is_relative_to(ROOT / "src"):
            continue
        plugin = registry.get(name)
        file = source.relative_to(ROOT).as_posix()
        row = [f"`{name}`", _first_line(type(plugin))]
        if hasattr(plugin, "environment"):
            row.append(f"`{plugin.environment}`" if plugin.environment else "the system's own")
        rows.append([*row, f"[{source.name}](../{file})"])
    return rows


def plugins_page() -> str:
    """Return docs/plugins.md: a table for each registry."""
    parts = [
        "# Plug-ins",
        _NOTE,
        "What each registry holds. How to add one: [adding.md](adding.md).",
    ]
    for registry in _REGISTRIES:
        rows = _plugin_rows(registry)
        columns = ["name", "what", "environment", "file"]
        if rows and len(rows[0]) == 3:
            columns.remove("environment")
        parts += [f"## {registry.kind}", _table(columns, rows)]
    return "\n\n".join(parts) + "\n"


def metrics_page() -> str:
    """Return docs/metrics.md: the registry of metrics."""
    rows = [
        [f"`{one.name}`", one.unit, one.direction.value, one.mean.value, one.description]
        for one in METRICS.values()
    ]
    parts = [
        "# Metrics",
        _NOTE,
        "Name, unit and direction come from one registry, `src/transect/domain/metrics.py`. Times "
        "are averaged arithmetically, rates harmonically, ratios never (Hoefler and Belli, SC'15).",
        _table(["name", "unit", "better", "average", "meaning"], rows),
    ]
    return "\n\n".join(parts) + "\n"


def _type(schema: dict[str, Any]) -> str:
    """Say a JSON schema's type in words, with its bounds."""
    if "$ref" in schema:
        return "mapping"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"])
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    words = {"object": "mapping", "number": "number", "integer": "integer", "string": "text"}
    signs = {
        "minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<",
    }  # fmt: skip
    bounds = [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
    return " ".join([words.get(kind, kind), ", ".join(bounds)]).strip()


def _default(schema: dict[str, Any], required: bool) -> str:
    if required:
        return "required"
    if "$ref" in schema:
        return ""
    return f"`{json.dumps(schema.get('default'), ensure_ascii=False)}`"


def _model_rows(model: type[BaseModel], prefix: str) -> list[list[str]]:
    schema = model.model_json_schema()
    required = set(schema.get("required", ()))
    rows = []
    for key, one in schema["properties"].items():
        meaning = one.get("description") or _MEANINGS.get(f"{model.__name__}.{key}")
        if not meaning:
            raise SystemExit(
                f"generate-docs: {model.__name__}.{key} has no description: give its Field one"
            )
        path = f"{prefix}.{key}" if prefix else key
        rows.append([f"`{path}`", _type(one), _default(one, key in required), meaning])
    return rows


def keys_block() -> str:
    """Return the tables of the study's and the system's keys."""
    parts = [_KEYS_START, _NOTE]
    for title, prefix, model in _MODELS:
        table = _table(["key", "type", "default", "meaning"], _model_rows(model, prefix))
        parts += [f"### {title}", _first_line(model), table]
    return "\n\n".join([*parts, _KEYS_END])


def studies_page() -> str:
    """Return docs/studies.md with its generated part replaced; the rest is written by hand."""
    page = (DOCS / "studies.md").read_text(encoding="utf-8")
    before, start, rest = page.partition(_KEYS_START)
    _, end, after = rest.partition(_KEYS_END)
    if not (start and end):
        raise SystemExit(f"generate-docs: docs/studies.md has no {_KEYS_START} … {_KEYS_END}")
    return before + keys_block() + after


def _schema(model: type[BaseModel]) -> str:
    return json.dumps(model.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def pages() -> dict[Path, str]:
    """Return the wanted text of every generated file."""
    return {
        DOCS / "record.schema.json": _schema(Record),
        DOCS / "study.schema.json": _schema(study.Study),
        DOCS / "system.schema.json": _schema(system.System),
        DOCS / "plugins.md": plugins_page(),
        DOCS / "metrics.md": metrics_page(),
        DOCS / "studies.md": studies_page(),
    }


def stale_pages() -> list[str]:
    """Return the paths, from the root, of the files that differ from what the code says."""
    return [
        path.relative_to(ROOT).as_posix()
        for path, text in pages().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


def main() -> int:
    """Write the files, or with --check only name the stale ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when stale")
    given = parser.parse_args()
    if given.check:
        stale = stale_pages()
        for name in stale:
            print(f"{name}: stale, run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for path, text in pages().items():
        if write_if_changed(path, text):
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
