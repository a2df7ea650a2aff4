"""Strategies use what a trainer offers them, and nothing behind it."""

from __future__ import annotations

import ast
from pathlib import Path

import transect.training.strategies

FOLDER = Path(transect.training.strategies.__file__).parent
TRAINERS = {"trainer", "owner", "_trainer"}
# What trainers say in their docstrings that a strategy may set.
REPLACEABLE = {"flat_gradient", "combine"}


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def of_trainers(source: str) -> list[ast.Attribute]:
    """Return every `trainer.NAME` of a source text."""
    return [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and name_of(node.value) in TRAINERS
    ]


def offences(source: str) -> list[str]:
    return [
        node.attr
        for node in of_trainers(source)
        if node.attr.startswith("_") or (isinstance(node.ctx, ast.Store) and node.attr not in REPLACEABLE)
    ]


def test_no_strategy_touches_or_replaces_what_is_its_trainers_own():
    sources = {path.name: path.read_text() for path in sorted(FOLDER.glob("*.py"))}
    assert any(of_trainers(source) for source in sources.values())
    assert {name: found for name, text in sources.items() if (found := offences(text))} == {}


def test_such_a_strategy_would_be_found():
    assert offences("owner._parameters = []") == ["_parameters"]
    assert offences("self._trainer.weights = lambda: 1") == ["weights"]
    assert offences("trainer.flat_gradient = 1; trainer.wrap(2)") == []
