"""Candidates for a single edit of a module, found by `ast`, and found again in a later version of it.

A mutant is named by its module, the function that it stands in, the kind of edit, the statement and the expression
before and after. Where a function says the same twice, an ordinal tells them apart. Texts are those of `ast.unparse`:
neither formatting nor a comment nor a line above makes a mutant another one.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _mutants.areas import AREAS, modules_of
from _mutants.kinds import SAYING, called, expression_edits, statement_edits

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
        text = ast.unparse(statement).splitlines()[0] if hasattr(statement, "body") else ast.unparse(statement)
        for kind, node, after in (*statement_edits(statement), *expression_edits(statement)):
            after_text = after if isinstance(after, str) else ast.unparse(after)
            before = ast.unparse(node)
            if before == after_text:
                continue
            mutant = Mutant(
                area=self._area,
                path=self._path,
                function=function,
                kind=kind,
                statement=text,
                before=before,
                after=after_text,
            )
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
            if isinstance(child, ast.stmt)
            and not hasattr(child, "body")
            and self._bodies.issuperset(_lines(child))
            and any(getattr(part, "id", getattr(part, "attr", None)) in names for part in ast.walk(child))
            for line in _lines(child)
        }
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
        return isinstance(statement.value, ast.Constant) or bool(called(statement.value) & SAYING)
    if isinstance(statement, _SCOPES):
        return statement.name in _PROSE
    if isinstance(statement, ast.If):
        return bool(called(statement.test) & {"TYPE_CHECKING", "__name__"})
    return any(isinstance(t, ast.Name) and t.id in _PROSE for t in _targets(statement))


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
    return sorted(drawn, key=lambda mutant: (mutant.area, mutant.path, mutant.function, mutant.name))


def find(mutant: Mutant, source: Path) -> Candidate | None:
    """Return where a mutant stands now, or None when its source text is gone."""
    path = source / mutant.path
    if not path.exists():
        return None
    found = (c for c in candidates_of(mutant.area, path, source) if c.mutant == mutant)
    return next(found, None)
