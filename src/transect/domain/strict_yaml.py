"""YAML into a pydantic model, with one clear message for whatever is wrong.

Plain words are read as YAML 1.2 has them (its core schema, https://yaml.org/spec/1.2.2/#103-core-schema):
`1e-3` is a number; `010`, `1:30`, `1_000`, `yes` and `2026-11-20` are text, which YAML 1.1 reads as 8, 90, 1000,
true and a date. Where a number is expected such text is refused with the number that it may mean.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from transect.domain.errors import BadInput
from transect.domain.secrets import login_in

M = TypeVar("M", bound=BaseModel)

# Values of one file, those too that aliases repeat: a short file can stand for billions.
_MOST_VALUES = 1_000_000
# Python itself writes no whole number of more than 4,300 digits.
_MOST_DIGITS = 1000
_CORE = "tag:yaml.org,2002:"
_MERGE = f"{_CORE}merge"
_SCALARS = {f"{_CORE}{name}" for name in ("null", "bool", "int", "float", "str", "merge")}
_INT = r"[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+"
_FLOAT = (
    r"[-+]?(?:(?:0|[1-9][0-9]*)?\.[0-9]+(?:[eE][-+]?[0-9]+)?"
    r"|(?:0|[1-9][0-9]*)(?:\.(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+))"
)
_RESOLVERS = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", _INT, "-+0123456789"),
    ("float", rf"{_FLOAT}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.0123456789"),
    ("merge", "<<", "<"),
)
_WRITTEN = {f"{_CORE}{name}": re.compile(pattern) for name, pattern, _ in _RESOLVERS}
_WRITTEN[f"{_CORE}float"] = re.compile(rf"{_WRITTEN[f'{_CORE}float'].pattern}|{_INT}")


class _Strict(yaml.SafeLoader):
    """The core schema of YAML 1.2, with merge keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


for _name, _pattern, _first in _RESOLVERS:
    # PyYAML knows an empty word by the first character ''.
    firsts = [character.replace("\0", "") for character in _first]
    _Strict.add_implicit_resolver(f"{_CORE}{_name}", re.compile(rf"^(?:{_pattern})\Z"), firsts)


def _mapping(loader: _Strict, node: yaml.MappingNode) -> dict[str, Any]:
    # What is merged comes first: a key of the mapping's own wins.
    loader.flatten_mapping(node)
    return {loader.construct_object(k): loader.construct_object(v, deep=True) for k, v in node.value}


_Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _check_keys(name: str, node: yaml.MappingNode) -> None:
    """Raise BadInput for a key that stands twice in one mapping, or is no text."""
    seen: set[str] = set()
    for key, _ in node.value:
        where = f"{name}:{key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode) or key.tag not in (f"{_CORE}str", _MERGE):
            if not isinstance(key, yaml.ScalarNode):
                raise BadInput(f"{where}: a list or a mapping cannot be a key: expected text")
            raise BadInput(f"{where}: key {key.value}: expected text: put it in quotes")
        if key.value in seen:
            raise BadInput(f"{where}: key '{key.value}' stands twice in one mapping")
        seen.add(key.value)


def _check_scalar(where: str, node: yaml.ScalarNode) -> None:
    """Raise BadInput for what is no text, or not written as its tag has it: PyYAML reads that as YAML 1.1."""
    if re.search("[\0\ud800-\udfff]", node.value):
        raise BadInput(f"{where}: {node.value!r}: no text: it holds a NUL or half a character")
    if login_in(node.value):
        raise BadInput(
            f"{where}: an address with a login in it, which results would show: leave it out, and give it to "
            "the program that asks for it (`~/.netrc`, a registry's `login`, a variable)"
        )
    pattern = _WRITTEN.get(node.tag)
    if pattern is not None and not pattern.fullmatch(node.value):
        kind = node.tag.removeprefix(_CORE)
        raise BadInput(f"{where}: {node.value!r} cannot be read as !!{kind}: leave the tag out")
    if node.tag == f"{_CORE}int" and len(node.value) > _MOST_DIGITS:
        raise BadInput(f"{where}: a number of {len(node.value):,} digits: expected a smaller one")


def _count(name: str, node: yaml.Node, counts: dict[yaml.Node, int | None]) -> int:
    """Return how many values a node stands for. Raises BadInput for what no file of ours holds."""
    where = f"{name}:{node.start_mark.line + 1}"
    if node in counts:
        known = counts[node]
        if known is None:
            raise BadInput(f"{where}: what an anchor names holds itself")
        return known
    counts[node] = None
    plain = {f"{_CORE}map" if isinstance(node, yaml.MappingNode) else f"{_CORE}seq"}
    if node.tag not in (_SCALARS if isinstance(node, yaml.ScalarNode) else plain):
        raise BadInput(f"{where}: the tag {node.tag} is not supported: write the value without it")
    total = 1
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(where, node)
    else:
        if isinstance(node, yaml.MappingNode):
            # Before anything is merged: a mapping that is merged is checked as any other.
            _check_keys(name, node)
        parts = [part for pair in node.value for part in pair] if node.tag == f"{_CORE}map" else node.value
        total += sum(_count(name, part, counts) for part in parts)
    if total > _MOST_VALUES:
        raise BadInput(f"{where}: its aliases stand for more than {_MOST_VALUES:,} values")
    counts[node] = total
    return total


def _read(text: str, path: Path) -> Any:
    """Return what a YAML text stands for. Raises BadInput naming the line."""
    loader = None
    try:
        loader = _Strict(text)
        loader.name = str(path)
        node = loader.get_single_node()
        if node is None:
            return None
        _count(str(path), node, {})
        return loader.construct_document(node)
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise BadInput(f"{path}:{line}: not YAML: the character U+{error.character:04X} cannot stand in it") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or error
        raise BadInput(f"{where}: not YAML: {problem}") from None
    except RecursionError:
        raise BadInput(f"{path}: its brackets or indents are nested too deeply to be read") from None
    except BadInput:
        raise
    except ValueError as error:
        raise BadInput(f"{path}: a value cannot be read: {error}") from None
    finally:
        if loader is not None:
            loader.dispose()


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


def _meant(text: str) -> str:
    """Return how a number or truth value is written that a text may mean, or an empty string.

    >>> [_meant(text) for text in ("0.5", "010", "1:30", "1_000", "yes", "many")]
    ['0.5', '10', '90', '1000', 'true', '']
    """
    words = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false"}
    words["false"] = "false"
    bare = re.sub(r"^([-+]?)0+(?=[0-9])", r"\1", text.replace("_", ""))
    if re.fullmatch(rf"{_INT}|{_FLOAT}", bare):
        return bare
    if re.fullmatch(r"[0-9]+(?::[0-5]?[0-9])+", text):
        total = 0
        for part in text.split(":"):
            total = 60 * total + int(part)
        return str(total)
    return words.get(text.lower(), "")


def _hint(kind: str, found: Any) -> str:
    """Return how to write what was meant, where a value is of another type than expected."""
    expected = kind.removesuffix("_type").removesuffix("_parsing")
    if expected == "string" and isinstance(found, bool | int | float):
        return ": put it in quotes for the text"
    if isinstance(found, str):
        meant = _meant(found)
        fits = meant in ("true", "false") if expected == "bool" else expected in ("int", "float")
        if meant and fits and (expected == "bool") == (meant in ("true", "false")):
            return f": write {meant}" + (" without quotes" if meant == found else "")
    if expected == "int" and isinstance(found, float) and found.is_integer():
        return f": write {int(found)}"
    return ""


def _shown(value: Any) -> str:
    """Return a value as a file has it: `true`, not Python's `True`."""
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)


def validate(model: type[M], content: Mapping[str, Any], where: str, below: str = "") -> M:
    """Make a model of what a file holds: no value becomes one of another type.

    `below` goes before the keys in messages. Raises BadInput naming file, key, value and what was
    expected. Lists pass for tuples, as they would from JSON; whole numbers pass for numbers.
    """
    try:
        return model.model_validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        rows = []
        for one in error.errors():
            key = below + ".".join(str(part) for part in one["loc"]) or "(top level)"
            if one["type"] == "extra_forbidden":
                known = _keys_at(model, one["loc"])
                near = difflib.get_close_matches(str(one["loc"][-1]), known, n=1, cutoff=0.5)
                hint = f" did you mean '{near[0]}'?" if near else ""
                rows.append(f"unknown key '{key}':{hint} Known: {', '.join(known)}")
            elif one["type"] == "missing":
                rows.append(f"key '{key}' is missing")
            else:
                found = one["input"]
                told = f"{one['msg']}, found {_shown(found)}{_hint(one['type'], found)}"
                rows.append(f"key '{key}': {told}")
        raise BadInput(*(f"{where}: {row}" for row in rows)) from None


def load_model(path: Path, model: type[M], data: dict[str, Any] | None = None) -> M:
    """Read and validate. Raises BadInput naming file, key, value and what was expected."""
    return validate(model, load_yaml(path) if data is None else data, str(path))
