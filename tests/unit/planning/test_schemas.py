"""The JSON schemas that editors complete studies and systems by: they take what ships, and tell a slip."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from checkouts import ROOT
from transect.domain.strict_yaml import load_yaml

FILES = sorted(path for kind in ("studies", "systems") for path in (ROOT / "config" / kind).glob("*.yaml"))
NAMES = ("study", "system", "record")


@cache
def schema(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "src/transect/data/schemas" / f"{name}.schema.json").read_text())


def wrong(kind: str, document: Any) -> list[str]:
    return [one.message for one in Draft202012Validator(schema(kind)).iter_errors(document)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT / "config").as_posix())
def test_what_ships_keeps_to_its_schema(path: Path):
    assert wrong({"studies": "study", "systems": "system"}[path.parent.name], load_yaml(path)) == []


@pytest.mark.parametrize(
    ("kind", "document", "said"),
    (
        ("study", {"name": "one", "trian": {}}, "'trian' was unexpected"),
        ("study", {"title": "no name"}, "'name' is a required property"),
        ("study", {"name": "one", "train": {"grids": [{"workloads": "digits-mlp"}]}}, "is not of type 'array'"),
        ("system", {"name": "one", "cores_per_node": "many"}, "'many' is not valid"),
    ),
)
def test_a_slip_is_told(kind, document, said):
    assert said in " ".join(wrong(kind, document))


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_says_its_dialect_its_name_and_what_it_is_of(name):
    one = schema(name)
    Draft202012Validator.check_schema(one)
    assert one["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert one["$id"].endswith(f"/transect-{name}.json")
    assert one["title"] and one["description"]


@pytest.mark.parametrize("name", ("study", "system"))
def test_every_key_that_an_editor_offers_is_described(name):
    models = {name: schema(name), **schema(name)["$defs"]}
    undescribed = [
        f"{model}.{key}"
        for model, one in models.items()
        for key, field in one.get("properties", {}).items()
        if "description" not in field and "$ref" not in field
    ]
    assert undescribed == []
