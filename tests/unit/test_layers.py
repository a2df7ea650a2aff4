"""The house: imports run downward, no circles, heavy libraries stay where they belong."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "transect"

# From the top down: a layer, which is a folder, imports those that follow it, never those before it. An import
# inside a function counts like any other.
LAYERS = (
    "cli",
    "adapters",
    "stages",
    "engine",
    "report",
    "analysis",
    "stats",
    "planning",
    "payloads",
    "hpc",
    "simulation",
    "planner",
    "text",
    "federated",
    "runtimes",
    "portable_step",
    "onnx_models",
    "launch",
    "training",
    "measure",
    "domain",
    "data",
)
FRAMEWORK_LIBRARIES = {"torch", "tensorflow", "keras", "mxnet", "jax", "horovod"}
REPORT_LIBRARIES = {"duckdb", "pandas", "pyarrow", "altair", "vl_convert", "jinja2", "markupsafe"}
# These must import in every framework environment.
EVERYWHERE = {
    "training": {"numpy", "pydantic"},
    "text": {"numpy", "pydantic"},
    "federated": {"numpy", "pydantic"},
    "measure": {"numpy", "pydantic", "psutil"},
    "payloads": {"numpy", "pydantic"},
    "domain": {"numpy", "pydantic", "psutil", "ruamel"},
}


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module. `lazy`: inside a function; `typing`: under `if TYPE_CHECKING`."""

    module: str
    line: int
    lazy: bool
    typing: bool

    @property
    def library(self) -> str:
        return self.module.split(".")[0]


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# What `data` links to, or puts before the package, is no part of the house.
LEFT_OUT = {"__pycache__", "pythonpath"}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if LEFT_OUT.isdisjoint(path.parts))
MODULES = {module_name(path): path for path in FILES}
LAYERED = [path for path in FILES if path.parent != PACKAGE]


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def layer_of_module(module: str) -> str:
    """Return the layer of a module of ours; of a package's, when only the package is named."""
    if module in MODULES and MODULES[module].parent != PACKAGE:
        return layer_of(MODULES[module])
    return [*module.split("."), ""][1]


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def walk(node: ast.AST, lazy: bool = False, typing: bool = False) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(one.name, child.lineno, lazy, typing) for one in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: a relative import"
            package = child.module or ""
            for one in child.names:
                whole = f"{package}.{one.name}"
                module = whole if whole in MODULES else package
                yield Import(module, child.lineno, lazy, typing)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, lazy or inside, typing or is_type_checking(child))


@cache
def imports(path: Path) -> tuple[Import, ...]:
    return tuple(walk(ast.parse(path.read_text(encoding="utf-8"))))


def offences(path: Path, wrong: list[Import]) -> list[str]:
    return [f"{path.relative_to(PACKAGE.parent)}:{one.line}: {one.module}" for one in wrong]


def test_every_folder_is_a_layer():
    folders = {layer_of(path) for path in LAYERED}
    assert folders == set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_run_downward(layer):
    above = set(LAYERS[: LAYERS.index(layer)])
    found = []
    for path in LAYERED:
        if layer_of(path) == layer:
            ours = [i for i in imports(path) if i.library == "transect"]
            wrong = [i for i in ours if layer_of_module(i.module) in above]
            found += offences(path, wrong)
    assert not found, f"{layer} imports from a layer above it"


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of one circle, in order, or nothing."""
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> list[str]:
        if name in trail:
            return trail[trail.index(name) :]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            if found := visit(other, [*trail, name]):
                return found
        done.add(name)
        return []

    for name in sorted(graph):
        if found := visit(name, []):
            return found
    return []


def test_no_module_imports_itself_in_a_circle():
    graph = {name: {i.module for i in imports(path) if not i.typing} & MODULES.keys() for name, path in MODULES.items()}
    assert not circle(graph)


def test_frameworks_are_imported_inside_functions_only():
    found = []
    for path in FILES:
        early = [i for i in imports(path) if not (i.lazy or i.typing)]
        found += offences(path, [i for i in early if i.library in FRAMEWORK_LIBRARIES])
    assert not found


def test_report_libraries_stay_in_analysis_and_report():
    found = []
    for path in FILES:
        if path.parent == PACKAGE or layer_of(path) not in ("analysis", "report"):
            # A user's table is read where modules are made, and pyarrow is there.
            own = {"pyarrow"} if path == PACKAGE / "training" / "datasets" / "table.py" else set()
            found += offences(path, [i for i in imports(path) if i.library in REPORT_LIBRARIES - own])
    assert not found


@pytest.mark.parametrize("layer", sorted(EVERYWHERE))
def test_lower_layers_import_in_every_environment(layer):
    allowed = EVERYWHERE[layer] | sys.stdlib_module_names | {"transect"}
    found = []
    for path in LAYERED:
        if layer_of(path) == layer:
            early = [i for i in imports(path) if not (i.lazy or i.typing)]
            found += offences(path, [i for i in early if i.library not in allowed])
    assert not found
