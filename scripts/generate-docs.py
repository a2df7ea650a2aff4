"""Generate the pages of docs/ that repeat what the code says.

`python scripts/generate-docs.py` writes them; `--check` exits 1 and names those that are stale.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from transect.analysis import records_schema
from transect.cli.kinds import REGISTRIES, plural
from transect.cli.new import SCAFFOLDS
from transect.domain import claims, study, system
from transect.domain.cell import Cell
from transect.domain.files import write_if_changed
from transect.domain.metrics import METRICS
from transect.domain.paths import ROOT
from transect.domain.record import Record
from transect.domain.registry import Registry
from transect.federated.aggregations import AGGREGATIONS
from transect.federated.methods import METHODS as FEDERATED_METHODS
from transect.hpc.base import PARSERS
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.planning.own_scripts import ScriptDefinition, TargetDefinition
from transect.planning.own_workloads import Definition
from transect.planning.stage import ordered_stages
from transect.planning.study import study_model
from transect.report.engine.rules import RULES
from transect.training.schedules import SCHEDULES
from transect.training.strategies import STRATEGIES
from transect.training.workloads import Parameters

# The tests load this file by its path.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from commands_page import commands_page
from coverage_tables import covered_parts
from key_meanings import MEANINGS
from plugin_members import with_tables

DOCS = ROOT / "docs"
_NOTE = "<!-- Made by scripts/generate-docs.py from the code: edit that, then `make docs`. -->"
_START = "<!-- generated keys: start -->"
_END = "<!-- generated keys: end -->"
# Where SchemaStore serves what it has; `transect where schemas` is the folder of these here.
_SCHEMAS = "https://json.schemastore.org/"
_CLAIMS = (
    ("A work", "", claims.Work),
    ("A claim", "claims[]", claims.Claim),
    ("What measures it", "claims[].measured[]", claims.Measured),
    ("What decides it", "claims[].rule", claims.Rule),
    ("A condition", "conditions.NAME", claims.Condition),
)
_RULES = "<!-- rules: start -->", "<!-- rules: end -->"


def _models() -> list[tuple[str, str, type[BaseModel]]]:
    """Return every table of keys: title, prefix of its keys, model."""
    models: list[tuple[str, str, type[BaseModel]]] = [
        ("A study", "", study_model()),
        ("limits", "limits", study.Limits),
        ("repeat_until", "repeat_until", study.RepeatUntil),
    ]
    for _, stage in ordered_stages():
        if stage.section is not None:
            models.append((stage.key, stage.key, stage.section))
            models += [
                (f"{stage.key}.{name}", f"{stage.key}.{name}{'[]' * (get_origin(field.annotation) is list)}", inside)
                for name, field in stage.section.model_fields.items()
                for inside in get_args(field.annotation)
                if isinstance(inside, type) and issubclass(inside, BaseModel)
            ]
    return [
        *models,
        ("workloads.NAME", "workloads.NAME", Parameters),
        ("workloads.NAME of a module", "workloads.NAME", Definition),
        ("workloads.NAME of scripts", "workloads.NAME", TargetDefinition),
        ("scripts.NAME", "workloads.NAME.scripts.NAME", ScriptDefinition),
        ("A system", "", system.System),
        ("price_per_node_hour", "price_per_node_hour", system.Price),
        ("networks.NAME", "networks.NAME", system.Network),
        ("environments.NAME", "environments.NAME", system.EnvironmentChoice),
    ]


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
        others = ", ".join(f"`{other}`" for other in registry.called()[name])
        row = [f"`{name}`" + (f" ({others})" if others else ""), registry.about(name)]
        # A stage's depends on the cell: it is a method there.
        if hasattr(plugin, "environment") and not callable(plugin.environment):
            row.append(f"`{plugin.environment}`" if plugin.environment else "the system's own")
        rows.append([*row, f"[{source.name}](../{file})"])
    return rows


def _option_rows(registry: Registry[Any]) -> list[list[str]]:
    return [
        [f"`{name}`", f"`{option}`", f"`{rule.default}`", rule.expected, rule.description]
        for name in registry
        if registry.source(name).is_relative_to(ROOT / "src")
        for option, rule in registry.get(name).options.items()
    ]


def plugins_page() -> str:
    """Return docs/plugins.md: a table for each registry, and those of options."""
    parts = [
        "# Plug-ins",
        _NOTE,
        "What each registry holds. How to add one: [adding.md](adding.md). Names in parentheses are understood too, whether in capitals or not, with\n`-` or `_`; one that stands beside several is an error that names these.",
    ]
    for registry in REGISTRIES:
        rows = _plugin_rows(registry)
        columns = ["name", "what", "environment", "file"]
        if rows and len(rows[0]) == 3:
            columns.remove("environment")
        parts += [f"## {registry.kind}", _table(columns, rows)]
        if registry in (STRATEGIES, SCHEDULES, AGGREGATIONS, FEDERATED_METHODS):
            names = [registry.kind, "option", "default", "takes", "meaning"]
            parts += [f"### Options of {plural(registry.kind)}", _table(names, _option_rows(registry))]
    return "\n\n".join(parts) + "\n"


def _programs(name: str) -> str:
    """Return what a benchmark runs: the names of its program, or a probe of ours."""
    names = BENCHMARKS.get(name).programs(Cell.of(stage="bench", benchmark=name))
    return " or ".join(f"`{one}`" for one in names) or "a probe of transect"


def benchmarks_block() -> str:
    """Return the tables of docs/benchmarks.md: parsers, benchmarks that are run, their options."""
    ours = ROOT / "src"
    parsers = [
        [f"`{name}`", PARSERS.get(name).description] for name in PARSERS if PARSERS.source(name).is_relative_to(ours)
    ]
    proofs = [
        [f"`{name}`", proof.identity, proof.success, proof.failure]
        for name in PARSERS
        if PARSERS.source(name).is_relative_to(ours) and (proof := PARSERS.get(name).validity_notes)
    ]
    rows, options = [], []
    for name in BENCHMARKS:
        if not BENCHMARKS.source(name).is_relative_to(ours):
            continue
        one = BENCHMARKS.get(name)
        environment = f"`{one.environment}`" if one.environment else "the system's own"
        about = [_first_line(type(one)), _programs(name), environment, f"`{one.parser}`"]
        rows.append([f"`{name}`", *about])
        options += [[f"`{name}`", f"`{key}`", text] for key, text in one.options.items()]
    parts = [
        _START,
        _NOTE,
        "### Parsers",
        _table(["name", "reads"], parsers),
        "### What each parser takes as proof",
        "Of identity: the lines with which a block of that benchmark begins. Of success: what makes a run `ok`. Of failure: what makes it `invalid`,"
        " where no other status is named. A run that lacks something is `failed` where the log says what stopped it, else `truncated`.",
        _table(["name", "identity", "success", "failure"], proofs),
        "### Benchmarks that transect runs",
        _table(["name", "what", "program", "environment", "parser"], rows),
        "### Options of benchmarks",
        _table(["benchmark", "option", "meaning"], options),
        _END,
    ]
    return "\n\n".join(parts)


def records_block() -> str:
    """Return the tables of docs/query.md: versions, columns that are always there, and further ones."""
    versions = [[str(number), said] for number, said in records_schema.EARLIER.items()]
    columns = ["column", "type", "unit", "meaning"]
    always, further = (
        [[f"`{one.name}`", one.type, one.unit, one.meaning] for one in group]
        for group in (records_schema.ALWAYS, records_schema.FURTHER)
    )
    return "\n\n".join(
        [
            _START,
            _NOTE,
            "### Versions",
            _table(["version", "what"], [*versions, [str(records_schema.VERSION), "as below"]]),
            "### Always there",
            _table(columns, always),
            "### Where a record has such an axis",
            _table(columns, further),
            _END,
        ]
    )


def covered_block() -> str:
    """Return the tables of docs/portable-training-step.md: what is covered, and what is not."""
    return "\n\n".join([_START, _NOTE, *covered_parts(_table), _END])


def metrics_page() -> str:
    """Return docs/metrics.md: the registry of metrics."""
    rows = [
        [f"`{one.name}`", one.unit, one.direction.value, one.mean.value, one.description] for one in METRICS.values()
    ]
    parts = [
        "# Metrics",
        _NOTE,
        "Name, unit and direction come from one registry, `src/transect/domain/metrics.py`. Times "
        "are averaged arithmetically, rates harmonically, ratios never (Hoefler and Belli, SC'15).",
        _table(["name", "unit", "better", "average", "meaning"], rows),
    ]
    return "\n\n".join(parts) + "\n"


_NAMED = {
    "_Growing": "[counts](#lists-that-grow-with-the-machine)",
    "_GrowingOrNull": "[counts](#lists-that-grow-with-the-machine) or null",
}


def _type(schema: dict[str, Any]) -> str:
    """Say a JSON schema's type in words, with its bounds."""
    if "$ref" in schema:
        return _NAMED.get(schema["$ref"].rsplit("/", 1)[-1], "mapping")
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"])
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    words = {"object": "mapping", "number": "number", "integer": "integer", "string": "text"}
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
    return " ".join([words.get(kind, kind), ", ".join(bounds)]).strip()


def _default(schema: dict[str, Any], required: bool) -> str:
    if required:
        return "required"
    if "$ref" in schema and not isinstance(schema.get("default"), list):
        return ""
    return f"`{json.dumps(schema.get('default'), ensure_ascii=False)}`"


def _model_rows(model: type[BaseModel], prefix: str) -> list[list[str]]:
    schema = model.model_json_schema()
    required = set(schema.get("required", ()))
    rows = []
    for key, one in schema["properties"].items():
        meaning = one.get("description") or MEANINGS.get(f"{model.__name__}.{key}")
        if not meaning and "$ref" in one:
            # What only repeats the description of its model is left out of the schema.
            inside = schema["$defs"][one["$ref"].rsplit("/", 1)[1]]
            meaning = str(inside.get("description", "")).split("\n")[0].rstrip(".")
        if not meaning:
            raise SystemExit(f"generate-docs: {model.__name__}.{key} has no description: give its Field one")
        path = f"{prefix}.{key}" if prefix else key
        rows.append([f"`{path}`", _type(one), _default(one, key in required), meaning])
    return rows


def keys_block(models: Iterable[tuple[str, str, type[BaseModel]]]) -> str:
    """Return the tables of keys of some models: title, prefix of the keys, model."""
    parts = [_START, _NOTE]
    for title, prefix, model in models:
        table = _table(["key", "type", "default", "meaning"], _model_rows(model, prefix))
        parts += [f"### {title}", _first_line(model), table]
    return "\n\n".join([*parts, _END])


def rules_block() -> str:
    """Return the table of rules of docs/studies.md."""
    start, end = _RULES
    return "\n\n".join(
        [start, _table(["rule", "what it decides"], [[f"`{n}`", said] for n, said in RULES.items()]), end]
    )


def _with_block(name: str, block: str) -> str:
    """Return a page of docs/ with its generated part replaced; the rest is written by hand."""
    return _replaced((DOCS / name).read_text(encoding="utf-8"), name, block, _START, _END)


def _replaced(page: str, name: str, block: str, first: str, last: str) -> str:
    before, start, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not (start and end):
        raise SystemExit(f"generate-docs: docs/{name} has no {first} … {last}")
    return before + block + after


def with_scaffolds(page: str) -> str:
    """Return a page with the files to copy that `transect new` writes too, as they are in the package."""

    def filled(match: re.Match[str]) -> str:
        file = SCAFFOLDS / match[2]
        return f"{match[1]}{file.read_text(encoding='utf-8')}```" if file.is_file() else match[0]

    return re.sub(r"(<!-- example: (\S+) -->\n```\w+\n).*?^```", filled, page, flags=re.MULTILINE | re.DOTALL)


def _schema(model: type[BaseModel], name: str, title: str) -> str:
    """Return a JSON Schema as editors and catalogues take it: with its dialect, its name, and what each key is for."""
    schema = model.model_json_schema()
    for of, one in [(model.__name__, schema), *schema["$defs"].items()]:
        for key, field in one.get("properties", {}).items():
            if meaning := MEANINGS.get(f"{of}.{key}"):
                field.setdefault("description", meaning)
    head = {"$schema": GenerateJsonSchema.schema_dialect, "$id": f"{_SCHEMAS}transect-{name}.json", "title": title}
    return (
        json.dumps(head | {key: one for key, one in schema.items() if key != "title"}, indent=2, ensure_ascii=False)
        + "\n"
    )


def pages() -> dict[Path, str]:
    """Return the wanted text of every generated file."""
    return {
        DOCS / "record.schema.json": _schema(Record, "record", "A record of transect"),
        DOCS / "study.schema.json": _schema(study_model(), "study", "A study of transect"),
        DOCS / "system.schema.json": _schema(system.System, "system", "A system of transect"),
        DOCS / "commands.md": commands_page(_NOTE),
        DOCS / "plugins.md": plugins_page(),
        DOCS / "claims.md": _with_block("claims.md", keys_block(_CLAIMS)),
        DOCS / "benchmarks.md": _with_block("benchmarks.md", benchmarks_block()),
        DOCS / "portable-training-step.md": _with_block("portable-training-step.md", covered_block()),
        DOCS / "metrics.md": metrics_page(),
        DOCS / "query.md": _with_block("query.md", records_block()),
        DOCS / "studies.md": _replaced(
            _with_block("studies.md", keys_block(_models())), "studies.md", rules_block(), *_RULES
        ),
        **{
            path: with_scaffolds(with_tables(path.read_text(encoding="utf-8"), _table))
            for path in sorted((DOCS / "adding").glob("*.md"))
        },
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
