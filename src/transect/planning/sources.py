"""Which source files a cell's outcome depends on, and their hashes."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path
from typing import Any

from transect.domain.cell import Cell, class_of
from transect.domain.errors import BadInput
from transect.domain.paths import PACKAGE
from transect.domain.registry import Registry, plugin_folders
from transect.domain.system import System
from transect.launch import LAUNCHERS
from transect.launch.wrapping import USUAL, WRAPPERS
from transect.planning.code_hash import Sources, file_of, hash_sources
from transect.planning.stage import STAGES, Stage


def plugin_files(registry: Registry[Any], name: str) -> list[Path]:
    """Return a plug-in's file, and those that its `code_files` names."""
    return [registry.source(name), *registry.get(name).code_files()]


def roots_of(cell: Cell, system: System) -> list[Path]:
    """Return the files from which everything is reached that the cell runs.

    What starts the payload and what turns its output into a record count: an edit there changes what the record says.
    """
    stage = STAGES.get(cell.stage)
    return [
        Path(inspect.getfile(class_of(cell.stage))),
        *_code_of(stage),
        *stage.sources(cell),
        *(file for registry, name in stage.plugins(cell) for file in plugin_files(registry, name)),
        *(file for name in stage.launchers(cell, system) for file in plugin_files(LAUNCHERS, name)),
        *(file for name in _wrappers(cell, system) for file in plugin_files(WRAPPERS, name)),
    ]


def _code_of(stage: Stage[Any]) -> list[Path]:
    """Return the files that start a stage's payload, run it, and read what it left. The declaration is none of them."""
    modules = [stage.runner or "transect.engine.stage_helpers"]
    if stage.payload:
        modules += ["transect.payloads.__main__", stage.payload]
    found = []
    for module in modules:
        name = module.partition(":")[0]
        if (file := file_of(name)) is None:
            raise BadInput(f"stage {type(stage).__name__}: there is no module {name}")
        found.append(file)
    return found


def _wrappers(cell: Cell, system: System) -> list[str]:
    """Return who runs the cell in a container, if anybody: of the cell, the system, or its images."""
    choices = [*system.environments.values(), *system.benchmarks.values()]
    images = [choice.wrapper or USUAL for choice in choices if choice.image]
    return sorted({*filter(None, [cell.container or system.container]), *images})


_KNOWN: dict[tuple[object, ...], Sources] = {}


def sources_of(cell: Cell, stage: Stage[Any], system: System, ground: Path) -> Sources:
    """Hash the sources that the cell runs: the same for all cells of the same plug-ins.

    `ground` is the study's folder: what plug-ins import from below it counts too.
    """
    plugins = tuple((registry.kind, name) for registry, name in stage.plugins(cell))
    wrappers = tuple(_wrappers(cell, system))
    launchers = stage.launchers(cell, system)
    key = (ground, cell.stage, plugins, wrappers, launchers, *stage.sources(cell))
    if key not in _KNOWN:
        _KNOWN[key] = hash_sources(frozenset(roots_of(cell, system)), ground)
    return _KNOWN[key]


def check_launchers(system: System, where: Path) -> None:
    """Raise BadInput for a launcher, or a container wrapper, that is not there."""
    for key, name in (("launcher", system.launcher), ("mpi_launcher", system.mpi_launcher)):
        LAUNCHERS.get(name, f"{where}: {key}")
    if system.container is not None:
        WRAPPERS.get(system.container, f"{where}: container")
    for section in ("environments", "benchmarks"):
        for name, choice in getattr(system, section).items():
            if choice.wrapper is not None:
                WRAPPERS.get(choice.wrapper, f"{where}: {section}.{name}.wrapper")


def report_files() -> list[Path]:
    """Return what the stages of plug-in folders bring for the report: `FOLDER/NAME/report.py`."""
    found = sorted(path for folder in plugin_folders() for path in folder.glob("*/report.py"))
    return [path for path in found if not path.parent.name.startswith("_")]


@cache
def report_hash(ground: Path) -> str:
    """Hash what the report is made with: its modules, templates, styles, and the stages' parts."""
    roots = [PACKAGE / "report" / "engine" / "build.py"]
    for folder in ("report", "analysis"):
        roots += [p for p in (PACKAGE / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return hash_sources(frozenset([*roots, *report_files()]), ground).hash
