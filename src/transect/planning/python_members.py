"""FILE.py:NAME in a study: something that a file of Python of the user's has, looked for without running it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from transect.domain.errors import BadInput, unknown_name

PYTHON_MEMBER = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")


def python_member(given: str, where: str, study: Path) -> tuple[Path, str]:
    """Return the file and the name of FILE.py:NAME, relative to the study. Raises BadInput where it has no such member."""
    found = PYTHON_MEMBER.fullmatch(given)
    if found is None:
        raise BadInput(f"{where}: expected FILE.py:NAME, got {given!r}")
    file = (study.parent / Path(found["file"]).expanduser()).resolve()
    if not file.is_file():
        raise BadInput(f"{where}: {file}: no such file")
    known = _defined(file)
    if known is not None and found["name"] not in known:
        raise unknown_name("member", found["name"], known, f"{where}: {file}")
    return file, found["name"]


def _defined(file: Path) -> set[str] | None:
    """Return what a file defines or imports at its top, None where that is not known without running it.

    Raises BadInput where it is no Python.
    """
    try:
        body = ast.parse(file.read_bytes(), str(file)).body
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"{file}: is no Python: {error}") from None
    names: set[str] = set()
    for statement in body:
        match statement:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                found = (node for target in targets for node in ast.walk(target))
                names |= {node.id for node in found if isinstance(node, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name.split(".")[0] for alias in aliases}
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                return None
    return None if "*" in names else names
