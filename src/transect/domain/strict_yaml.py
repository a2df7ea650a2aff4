"""YAML into a pydantic model, with one clear message for whatever is wrong.

Plain words are read as YAML 1.2 has them: `1e-3` and `010` are the numbers 0.001 and 10; `yes`, `on` and `1:30`
are text. A date is text too: JSON, in which all of it is passed on, has none.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from transect.domain.errors import BadInput
from transect.domain.secrets import login_in

M = TypeVar("M", bound=BaseModel)

# Characters and values of one file with all that its aliases repeat: a short file can stand for billions.
_MAX_SIZE = 5_000_000
_KEYS = {f"tag:yaml.org,2002:{name}" for name in ("str", "timestamp", "merge")}


class _Constructor(SafeConstructor):
    """What YAML's core schema has, without addresses that hold a login: results show them."""

    def construct_document(self, node: Node) -> Any:
        if _size(node, {}) > _MAX_SIZE:
            raise YAMLError(f"with what its aliases repeat it holds more than {_MAX_SIZE:,} characters")
        return super().construct_document(node)

    def flatten_mapping(self, node: MappingNode) -> Any:
        for key, _ in node.value:
            if key.tag not in _KEYS:  # JSON would make the text "10" of `010`
                problem = f"key {key.value}: expected text: put it in quotes"
                raise MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        # ruamel.yaml looks for a key that stands twice only where nothing is merged.
        seen: set[str] = set()
        for key, _ in node.value if node.merge is None else ():
            if isinstance(key, ScalarNode):
                if key.value in seen:
                    problem = f"key '{key.value}' stands twice in one mapping"
                    raise MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                seen.add(key.value)
        return super().flatten_mapping(node)

    def text(self, node: ScalarNode) -> str:
        value = str(node.value)
        if login_in(value):
            problem = (
                "an address with a login in it, which results would show: leave it out, and give it to the program "
                "that asks for it (`~/.netrc`, a registry's `login`, a variable)"
            )
            raise MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return value


for _tag in ("str", "timestamp"):
    _Constructor.add_constructor(f"tag:yaml.org,2002:{_tag}", _Constructor.text)


def _size(node: Node, known: dict[int, int]) -> int:
    """Return how many characters and values a node stands for."""
    if id(node) not in known:
        known[id(node)] = 1  # for one that holds itself, which is refused later
        parts = [part for pair in node.value for part in pair] if isinstance(node, MappingNode) else node.value
        more = len(parts) if isinstance(node, ScalarNode) else sum(_size(part, known) for part in parts)
        known[id(node)] += more
    return known[id(node)]


def _read(text: str, path: Path) -> Any:
    """Return what a YAML text stands for, in types of JSON. Raises BadInput naming the line."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _Constructor
    try:
        return json.loads(json.dumps(yaml.load(text)))
    except MarkedYAMLError as error:
        where = f"{path}:{error.problem_mark.line + 1}" if error.problem_mark else str(path)
        raise BadInput(f"{where}: {error.problem}") from None
    except (YAMLError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise BadInput(f"{path}: cannot be read as YAML: {error}") from None


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a mapping. Raises BadInput for a missing, unreadable, empty or malformed file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    value = _read(text, path)
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
        place = place["items"] if isinstance(part, int) else place.get("properties", {}).get(part, {})
        for choice in [place, *place.get("anyOf", [])]:
            if "$ref" in choice:
                place = schema["$defs"][choice["$ref"].rsplit("/", 1)[1]]
    return sorted(place.get("properties", {}))


def _shown(value: Any) -> str:
    """Return a value as a file has it: `true`, not Python's `True`."""
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)


def validate(model: type[M], content: Mapping[str, Any], where: str, below: str = "", context: Any = None) -> M:
    """Make a model of what a file holds: no value becomes one of another type.

    `below` goes before the keys in messages; `context` is for the model's own validators. Raises BadInput naming file, key, value and what was
    expected. Lists pass for tuples, as they would from JSON; whole numbers pass for numbers.
    """
    try:
        return model.model_validate_json(json.dumps(content), strict=True, context=context)
    except ValidationError as error:
        rows = []
        for problem in error.errors():
            key = below + ".".join(str(part) for part in problem["loc"]) or "(top level)"
            if problem["type"] == "extra_forbidden":
                known = _keys_at(model, problem["loc"])
                near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1, cutoff=0.5)
                hint = f" did you mean '{near[0]}'?" if near else ""
                rows.append(f"unknown key '{key}':{hint} Known: {', '.join(known)}")
            elif problem["type"] == "missing":
                rows.append(f"key '{key}' is missing")
            else:
                rows.append(f"key '{key}': {problem['msg']}, found {_shown(problem['input'])}")
        raise BadInput(*(f"{where}: {row}" for row in rows)) from None


def load_model(path: Path, model: type[M]) -> M:
    """Read and validate. Raises BadInput naming file, key, value and what was expected."""
    return validate(model, load_yaml(path), str(path))
