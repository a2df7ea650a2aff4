"""Kinds of edits: what of a statement, and of its expressions, is replaced, and by what.

None is of what is only said: a message, an f-string, an annotation, a log line, the layout of something printed.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

_COMPARE = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
_OPPOSITE = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
# Whose result no decision hangs on: layout of what is printed, sizes of caches.
_UNDECIDING = {"indent", "maxsize", "stacklevel", "width", "timeout", "timeout_s"}
SAYING = {"print", "log", "logger", "logging", "warnings", "warn", "terminal"}


def called(node: Any) -> set[str]:
    """Names in what is called: `log.warning(...)` has `log` and `warning`."""
    node = node.func if isinstance(node, ast.Call) else node
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


def statement_edits(statement: Any) -> Iterator[tuple[str, Any, Any]]:
    """Edits of a whole simple statement."""
    if (
        isinstance(statement, ast.Raise | ast.AugAssign | ast.Continue)
        or (isinstance(statement, ast.Assign) and not isinstance(statement.targets[0], ast.Name | ast.Tuple))
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


def expression_edits(statement: Any) -> Iterator[tuple[str, Any, Any]]:
    """Edits of expressions of the statement itself, not of the statements in its body."""
    if isinstance(statement, ast.If | ast.While):
        for forced in ("True", "False")[isinstance(statement, ast.While) :]:
            yield "condition", statement.test, forced
    for node in _expressions(statement):
        yield from ((kind, node if place is None else place, after) for kind, place, after in _edits(node))


def _expressions(node: Any) -> Iterator[Any]:
    """Expressions below a node; nothing of annotations, decorators, messages and f-strings."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.arg):
        return
    if isinstance(node, ast.Call) and called(node) & SAYING:
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
            if isinstance(child, ast.expr | ast.keyword | ast.comprehension | ast.arguments | ast.withitem):
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
        case ast.BinOp() if type(node.op) in _ARITHMETIC and not any(map(_is_text, (node.left, node.right))):
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
            setattr(edited.func, "id" if isinstance(node.func, ast.Name) else "attr", _OPPOSITE[name])
            yield "opposite", None, edited
        case ast.Subscript(slice=ast.Slice(), ctx=ast.Load()):
            edited = copy.copy(node)
            edited.slice = copy.copy(node.slice)
            edited.slice.upper = _shifted(node.slice.upper)
            yield "slice", None, edited


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _shifted(end: Any) -> Any:
    if end is None:
        return ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))
    if isinstance(end, ast.UnaryOp) and ast.unparse(end) == "-1":
        return None
    return ast.BinOp(left=end, op=ast.Add(), right=ast.Constant(value=1))
