"""Strategies use what a trainer offers them, and nothing behind it."""

from __future__ import annotations

import ast
import pkgutil
from importlib import import_module
from pathlib import Path

import transect.training.frameworks
import transect.training.strategies
from transect.training.frameworks import FusedTrainer, ResumableTrainer, Trainer

FOLDER = Path(transect.training.strategies.__file__).parent
TRAINERS = {"trainer", "owner", "_trainer"}
# What trainers say in their docstrings that a strategy may set.
REPLACEABLE = {"flat_gradient", "combine"}


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def offences(source: str) -> list[str]:
    of_trainers = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and name_of(node.value) in TRAINERS
    )
    return [
        node.attr
        for node in of_trainers
        if node.attr.startswith("_") or (isinstance(node.ctx, ast.Store) and node.attr not in REPLACEABLE)
    ]


def test_no_strategy_touches_or_replaces_what_is_its_trainers_own():
    assert offences("owner._parameters = 1; self._trainer.weights = 2; trainer.flat_gradient = 3") == [
        "_parameters",
        "weights",
    ]
    sources = {path.name: path.read_text() for path in sorted(FOLDER.glob("*.py"))}
    assert {name: found for name, text in sources.items() if (found := offences(text))} == {}


def test_a_trainer_with_a_whole_step_or_a_way_to_resume_says_so_by_its_class():
    """Who asks, asks for the class: the method alone would never be called."""
    names = [m.name for m in pkgutil.iter_modules(transect.training.frameworks.__path__) if "trainer" in m.name]
    found = [import_module(f"transect.training.frameworks.{name}") for name in names]
    members = [member for module in found for member in vars(module).values()]
    kinds = {member for member in members if isinstance(member, type) and issubclass(member, Trainer)}
    kinds -= {Trainer, FusedTrainer, ResumableTrainer}
    assert {issubclass(kind, FusedTrainer) for kind in kinds} == {True, False}
    assert [kind for kind in kinds if hasattr(kind, "step") and not issubclass(kind, FusedTrainer)] == []
    assert [kind for kind in kinds if hasattr(kind, "resume") and not issubclass(kind, ResumableTrainer)] == []
