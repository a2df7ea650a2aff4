"""YAML into a pydantic model, with one clear message for whatever is wrong."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from transect.domain.errors import BadInput

__all__ = ["load_model", "load_yaml"]

M = TypeVar("M", bound=BaseModel)


class _Strict(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping."""


def _mapping(loader: _Strict, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node)
        if key in seen:
            line = key_node.start_mark.line + 1
            raise BadInput(f"{loader.name}:{line}: key '{key}' stands twice in one mapping")
        seen.add(key)
    return {
        loader.construct_object(k): loader.construct_object(v, deep=True) for k, v in node.value
    }


_Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a mapping. Raises BadInput for a missing, unreadable, empty or malformed file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    loader = _Strict(text)
    loader.name = str(path)
    try:
        value = loader.get_single_data()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or error
        raise BadInput(f"{where}: not YAML: {problem}") from None
    finally:
        loader.dispose()
    if value is None:
        raise BadInput(f"{path}: the file is empty, expected a mapping of keys")
    if not isinstance(value, dict):
        raise BadInput(f"{path}: expected a mapping of keys, found {type(value).__name__}")
    return value


def _keys_at(model: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    """Return the known keys of the mapping in which the last part of `location` stands."""
    schema = model.model_json_schema()
    place: dict[str, Any] = schema
    for part in location[:-1]:
        place = (
            place["items"] if isinstance(part, int) else place.get("properties", {}).get(part, {})
        )
        for choice in [place, *place.get("anyOf", [])]:
            if "$ref" in choice:
                place = schema["$defs"][choice["$ref"].rsplit("/", 1)[1]]
    return sorted(place.get("properties", {}))


def load_model(path: Path, model: type[M], data: dict[str, Any] | None = None) -> M:
    """Read and validate. Raises BadInput naming file, key, value and what was expected."""
    content = load_yaml(path) if data is None else data
    try:
        return model.model_validate(content)
    except ValidationError as error:
        rows = []
        for one in error.errors():
            key = ".".join(str(part) for part in one["loc"]) or "(top level)"
            if one["type"] == "extra_forbidden":
                known = _keys_at(model, one["loc"])
                near = difflib.get_close_matches(str(one["loc"][-1]), known, n=1, cutoff=0.5)
                hint = f" did you mean '{near[0]}'?" if near else ""
                rows.append(f"unknown key '{key}':{hint} Known: {', '.join(known)}")
            elif one["type"] == "missing":
                rows.append(f"key '{key}' is missing")
            else:
                rows.append(f"key '{key}': {one['msg']}, found {one['input']!r}")
        raise BadInput("\n".join(f"{path}: {row}" for row in rows)) from None
