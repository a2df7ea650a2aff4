"""Candidates for a single edit of a module, found by `ast`, and found again in a later version of it.

A mutant is named by its module, the function that it stands in, the kind of edit, the statement and the expression
before and after. Where a function says the same twice, an ordinal tells them apart. Texts are those of `ast.unparse`:
neither formatting nor a comment nor a line above makes a mutant another one.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _mutants.areas import AREAS, modules_of

__all__ = ["Candidate", "Mutant", "candidates_of", "draw", "find"]

_COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip
_OPPOSITE = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
}
# Whose result no decision hangs on: layout of what is printed, sizes of caches.
_UNDECIDING = {"indent", "maxsize", "stacklevel", "width", "timeout", "timeout_s"}
_SAYING = {"print", "log", "logger", "logging", "warnings", "warn", "terminal"}
_PROSE = {"__repr__", "__str__", "__all__"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One edit. `path` is below `src`; `function` is empty for a statement of the module itself."""

    area: str
    path: str
    function: str
    kind: str
    statement: str
    before: str
    after: str
    ordinal: int = 0

    @property
    def name(self) -> str:
        """What a person and the files of results call it."""
        nth = f" #{self.ordinal}" if self.ordinal else ""
        where = f"{self.path.removeprefix('transect/')}:{self.function or '-'}"
        edit = f"{where}: {self.before} => {self.after}{nth}"
        return edit if self.before == self.statement else f"{edit} in: {self.statement}"

    @property
    def id(self) -> str:
        """The same, in ten letters."""
        return hashlib.sha256(f"{self.kind} {self.name}".encode()).hexdigest()[:10]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mutant where it stands in one version of its module."""

    mutant: Mutant
    start: int
    end: int
    replacement: bytes
    # Lines of which a test has to execute one to be able to notice.
    lines: frozenset[int]

    def apply(self, source: bytes) -> bytes:
        """Return the module's source with the edit in it."""
        return source[: self.start] + self.replacement + source[self.end :]


class _Module:
    """Walks one module."""

    def __init__(self, area: str, path: str, source: bytes) -> None:
        self._area, self._path = area, path
        self._tree = ast.parse(source)
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._bodies = frozenset(
            line
            for node in ast.walk(self._tree)
            if isinstance(node, _FUNCTIONS)
            for statement in node.body
            for line in _lines(statement)
        )

    def candidates(self) -> list[Candidate]:
        """Return all, in the order in which they stand."""
        seen: Counter[Mutant] = Counter()
        found = []
        for statement, scopes in self._statements(self._tree.body, ()):
            for candidate in self._of_statement(statement, ".".join(s.name for s in scopes)):
                ordinal = seen[candidate.mutant]
                seen[candidate.mutant] += 1
                named = dataclasses.replace(candidate.mutant, ordinal=ordinal)
                found.append(dataclasses.replace(candidate, mutant=named))
        return found

    def _statements(self, body: list[Any], scopes: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
        for statement in body:
            if _says_nothing(statement):
                continue
            inside = (*scopes, statement) if isinstance(statement, _SCOPES) else scopes
            yield statement, inside
            for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                for child in getattr(statement, name, []):
                    branch = isinstance(child, ast.ExceptHandler | ast.match_case)
                    yield from self._statements(child.body if branch else [child], inside)

    def _of_statement(self, statement: Any, function: str) -> Iterator[Candidate]:
        text = (
            ast.unparse(statement).splitlines()[0]
            if hasattr(statement, "body")
            else ast.unparse(statement)
        )
        for kind, node, after in (*_statement_edits(statement), *_expression_edits(statement)):
            after_text = after if isinstance(after, str) else ast.unparse(after)
            before = ast.unparse(node)
            if before == after_text:
                continue
            mutant = Mutant(
                area=self._area, path=self._path, function=function, kind=kind, statement=text, before=before, after=after_text,
            )  # fmt: skip
            shown = after_text if isinstance(node, ast.stmt) else f"({after_text})"
            yield Candidate(
                mutant=mutant,
                start=self._starts[node.lineno - 1] + node.col_offset,
                end=self._starts[node.end_lineno - 1] + node.end_col_offset,
                replacement=shown.encode(),
                lines=self._noticing(statement, node),
            )

    def _noticing(self, statement: Any, node: Any) -> frozenset[int]:
        """Lines that a test executes when it meets the edit; of what runs at import, those that use its result."""
        if isinstance(statement, _FUNCTIONS):
            return frozenset(line for child in statement.body for line in _lines(child))
        lines = frozenset(_lines(node if hasattr(statement, "body") else statement))
        if lines <= self._bodies:
            return lines
        names = {target.id for target in _targets(statement) if isinstance(target, ast.Name)}
        using = {
            line
            for child in ast.walk(self._tree)
            if isinstance(child, ast.stmt) and not hasattr(child, "body") and self._bodies.issuperset(_lines(child))
            and any(getattr(part, "id", getattr(part, "attr", None)) in names for part in ast.walk(child))
            for line in _lines(child)
        }  # fmt: skip
        return frozenset(using) or self._bodies


def _lines(node: Any) -> range:
    return range(node.lineno, node.end_lineno + 1)


def _targets(statement: Any) -> list[Any]:
    return getattr(statement, "targets", None) or [getattr(statement, "target", None)]


def _says_nothing(statement: Any) -> bool:
    """Docstrings, imports, `__all__`, and what runs only under a type checker or as a program."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) or bool(_names(statement.value) & _SAYING)
    if isinstance(statement, _SCOPES):
        return statement.name in _PROSE
    if isinstance(statement, ast.If):
        return bool(_names(statement.test) & {"TYPE_CHECKING", "__name__"})
    return any(isinstance(t, ast.Name) and t.id in _PROSE for t in _targets(statement))


def _names(node: Any) -> set[str]:
    """Names in what is called: `log.warning(...)` has `log` and `warning`."""
    node = node.func if isinstance(node, ast.Call) else node
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


def _statement_edits(statement: Any) -> Iterator[tuple[str, Any, Any]]:
    """Edits of a whole simple statement."""
    if (
        isinstance(statement, ast.Raise | ast.AugAssign | ast.Continue)
        or (
            isinstance(statement, ast.Assign)
            and not isinstance(statement.targets[0], ast.Name | ast.Tuple)
        )
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call))
    ):
        yield "drop", statement, "pass"
    elif isinstance(statement, ast.Return) and statement.value is not None:
        value = statement.value
        truth = isinstance(value, ast.Compare | ast.BoolOp) or (
            isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
        )
        if truth or (isinstance(value, ast.Constant) and isinstance(value.value, bool)):
            yield "return", statement, ast.Return(value=ast.UnaryOp(op=ast.Not(), operand=value))
        elif not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", statement, "return None"


def _expression_edits(statement: Any) -> Iterator[tuple[str, Any, Any]]:
    """Edits of expressions of the statement itself, not of the statements in its body."""
    if isinstance(statement, ast.If | ast.While):
        for forced in ("True", "False")[isinstance(statement, ast.While) :]:
            yield "condition", statement.test, forced
    for node in _expressions(statement):
        yield from (
            (kind, node if place is None else place, after) for kind, place, after in _edits(node)
        )


def _expressions(node: Any) -> Iterator[Any]:
    """Expressions below a node; nothing of annotations, decorators, messages and f-strings."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.arg):
        return
    if isinstance(node, ast.Call) and _names(node) & _SAYING:
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        if isinstance(node, ast.Assert) and field == "msg":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg in _UNDECIDING:
                continue
            if isinstance(child, ast.expr):
                yield child
            if isinstance(
                child, ast.expr | ast.keyword | ast.comprehension | ast.arguments | ast.withitem
            ):
                yield from _expressions(child)
            elif isinstance(child, ast.match_case) and child.guard is not None:
                yield child.guard
                yield from _expressions(child.guard)


def _edits(node: Any) -> Iterator[tuple[str, Any, Any]]:
    """Edits of one expression: kind, the expression that is replaced when it is another one, what replaces it."""
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                edited = copy.copy(node)
                edited.ops = [*node.ops[:index], _COMPARE[type(operator)](), *node.ops[index + 1 :]]
                yield "compare", None, edited
        case ast.BinOp() if type(node.op) in _ARITHMETIC and not any(
            map(_is_text, (node.left, node.right))
        ):
            edited = copy.copy(node)
            edited.op = _ARITHMETIC[type(node.op)]()
            yield "arithmetic", None, edited
        case ast.BoolOp():
            edited = copy.copy(node)
            edited.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
            yield "boolean", None, edited
        case ast.UnaryOp(op=ast.Not()):
            yield "not", None, node.operand
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            off = value * 1.1 if isinstance(value, float) else value + max(1, abs(value) // 10)
            yield "constant", None, ast.Constant(value=off)
        case ast.IfExp():
            yield "condition", node.test, "True"
            yield "condition", node.test, "False"
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            for test in (test for generator in node.generators for test in generator.ifs):
                yield "condition", test, "True"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _OPPOSITE:
            edited = copy.copy(node)
            edited.func = copy.copy(node.func)
            setattr(
                edited.func, "id" if isinstance(node.func, ast.Name) else "attr", _OPPOSITE[name]
            )
            yield "opposite", None, edited
        case ast.Subscript(slice=ast.Slice(), ctx=ast.Load()):
            edited = copy.copy(node)
            edited.slice = copy.copy(node.slice)
            edited.slice.upper = _shifted(node.slice.upper)
            yield "slice", None, edited


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _shifted(end: Any) -> Any:
    if end is None:
        return ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))
    if isinstance(end, ast.UnaryOp) and ast.unparse(end) == "-1":
        return None
    return ast.BinOp(left=end, op=ast.Add(), right=ast.Constant(value=1))


def candidates_of(area: str, path: Path, source: Path) -> list[Candidate]:
    """Return all edits of a module; `source` is the folder that holds the package."""
    return _Module(area, path.relative_to(source).as_posix(), path.read_bytes()).candidates()


def draw(source: Path, *, seed: int, count: int) -> list[Mutant]:
    """Return `count` mutants: as many of each area, and in an area of each kind, while there are any.

    Two of one statement tell little more than one, so that a statement is drawn once.
    """
    drawn: list[Mutant] = []
    for index, area in enumerate(AREAS):
        share = count * (index + 1) // len(AREAS) - count * index // len(AREAS)
        chance = random.Random(f"{seed} {area}")
        kinds: dict[str, list[Mutant]] = {}
        for path in modules_of(area, source / "transect"):
            for candidate in candidates_of(area, path, source):
                kinds.setdefault(candidate.mutant.kind, []).append(candidate.mutant)
        for kind in sorted(kinds):
            chance.shuffle(kinds[kind])
        statements: set[tuple[str, str, str]] = set()
        of_area: list[Mutant] = []
        while len(of_area) < share and any(kinds.values()):
            for kind in sorted(kinds):
                while kinds[kind] and len(of_area) < share:
                    mutant = kinds[kind].pop()
                    place = (mutant.path, mutant.function, mutant.statement)
                    if place not in statements:
                        statements.add(place)
                        of_area.append(mutant)
                        break
        drawn += of_area
    return sorted(
        drawn, key=lambda mutant: (mutant.area, mutant.path, mutant.function, mutant.name)
    )


def find(mutant: Mutant, source: Path) -> Candidate | None:
    """Return where a mutant stands now, or None when its source text is gone."""
    path = source / mutant.path
    if not path.exists():
        return None
    found = (c for c in candidates_of(mutant.area, path, source) if c.mutant == mutant)
    return next(found, None)
