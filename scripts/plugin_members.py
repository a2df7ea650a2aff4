"""What a plug-in of each kind must have and may have, as its abstract class says it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_MARK = re.compile(r"(<!-- members: (\S+:\S+) -->\n).*?(<!-- members: end -->)", re.DOTALL)
# A default that is longer than this says less than its description.
_SHORT = 24


@dataclass(frozen=True, slots=True)
class _Member:
    """One method or attribute of a class."""

    name: str
    said: str
    required: bool
    default: str = ""


def _first_sentence(text: str) -> str:
    return re.split(r"(?<!e\.g)\.\s+(?=[A-Z`{(])", " ".join(text.split()), maxsplit=1)[0].rstrip(".")


def _comment(lines: list[str], node: ast.stmt) -> str:
    """Return the comment above an attribute, or above those that it follows without a gap."""
    at = node.lineno - 2
    while at >= 0 and lines[at].strip() and not lines[at].lstrip().startswith(("#", "def", "@", '"""')):
        at -= 1
    words: list[str] = []
    while at >= 0 and lines[at].lstrip().startswith("#"):
        words.insert(0, lines[at].strip().lstrip("# "))
        at -= 1
    return _first_sentence(" ".join(words))


def _members(cls: type) -> Iterator[_Member]:
    source = textwrap.dedent(inspect.getsource(cls))
    lines = source.splitlines()
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            marks = {ast.unparse(one) for one in node.decorator_list}
            required = "abstractmethod" in marks or getattr(cls, "_is_protocol", False)
            arguments = [one.arg for one in node.args.args[1:]]
            name = node.name if "property" in marks else f"{node.name}({', '.join(arguments)})"
            said = (ast.get_docstring(node) or "").split("\n\n")[0]
            yield _Member(name, _first_sentence(said), required)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            assert isinstance(target, ast.Name)
            if not target.id.startswith("_"):
                default = ast.unparse(node.value) if node.value else ""
                yield _Member(target.id, _comment(lines, node), not node.value, default)


def _rows(place: str) -> Iterator[list[str]]:
    seen: set[str] = set()
    module, _, names = place.partition(":")
    for number, name in enumerate(names.split(",")):
        cls = getattr(importlib.import_module(module), name)
        bases = [one for one in cls.__mro__ if one.__module__.startswith("transect.")]
        found: dict[str, _Member] = {}
        for base in bases:
            for member in _members(base):
                found.setdefault(member.name.partition("(")[0], member)
        for key, one in sorted(found.items(), key=lambda item: not item[1].required):
            if key in seen:
                continue
            seen.add(key)
            if not one.said:
                raise SystemExit(f"generate-docs: {module}.{name}.{key} has neither a docstring nor a comment")
            default = one.default if len(one.default) <= _SHORT and "MappingProxyType" not in one.default else ""
            needed = "yes" if one.required else f"no: `{default}`" if default else "no"
            yield [f"`{one.name}`", f"of a `{name}`, {needed}" if number else needed, one.said]


def with_tables(page: str, table: Callable[[list[str], list[list[str]]], str]) -> str:
    """Return a page with a table between each `<!-- members: MODULE:CLASS,CLASS -->` and its end."""

    def filled(match: re.Match[str]) -> str:
        rows = table(["member", "required", "says"], list(_rows(match[2])))
        return f"{match[1]}{rows}\n{match[3]}"

    return _MARK.sub(filled, page)
