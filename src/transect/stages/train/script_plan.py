"""A study's own scripts as planning sees them: what a cell's spec says, and which files its outcome depends on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transect.domain.axes.train import TrainCell
from transect.domain.paths import PACKAGE
from transect.planning.code_hash import closure
from transect.planning.context import Context
from transect.planning.environments import environment_source
from transect.planning.own_workloads import read_by
from transect.training.own_workload import SPEC_KEY, OwnWorkload
from transect.training.script_workload import FOLDER, SCRIPTS, Script, ScriptWorkload, script_of, script_workload
from transect.training.workloads import WORKLOADS

# What starts a script, and what reads what it tells.
RUNNING = tuple(PACKAGE / name for name in ("stages/train/script.py", "payloads/script_rank.py"))


def check_environments(workloads: Iterable[str], context: Context) -> None:
    """Note environments of scripts and modules that neither the project, a plug-in folder nor the system has."""
    for name in workloads:
        known = WORKLOADS.get(name) if name in WORKLOADS else None
        asked = [script.environment for script in known.scripts.values()] if isinstance(known, ScriptWorkload) else []
        asked += [known.environment] if isinstance(known, OwnWorkload) else []
        for environment in asked:
            if environment not in context.system.environments:
                with context.complaints.noted():
                    environment_source(environment, context.where(f"workloads.{name}.environment"))


def no_script(cell: TrainCell) -> str | None:
    """Return why a framework that is no script cannot train a workload of scripts, or None."""
    workload = WORKLOADS.get(cell.workload)
    if not isinstance(workload, ScriptWorkload) or cell.framework in workload.scripts:
        return None
    return f"{cell.workload} is trained by its scripts alone: {', '.join(workload.scripts)}"


def script_spec(cell: TrainCell, script: Script, context: Context) -> dict[str, Any]:
    """Return what a cell's spec says of its workload: this script alone, so that another one's edit changes nothing.

    No hyper-parameter is known but the batch: the others are the script's.
    """
    workload = script_workload(cell)
    batch, target = workload.defaults.batch, workload.defaults.quality_target
    told = {"score": workload.score, "label": workload.label, "clock": workload.clock, "batch": batch, "target": target}
    return {
        "parameters": {"batch": batch, "quality_target": target},
        "seed": context.study.seed,
        FOLDER: str(workload.folder),
        SPEC_KEY: {
            "workload": cell.workload,
            SCRIPTS: {cell.framework: script.model_dump(mode="json")},
            **told,
            "reads": _reads(workload.folder / script.file, workload.folder),
        },
    }


def _reads(file: Path, folder: Path) -> list[str]:
    """Return what a script and the files that it imports name, such as settings beside them, relative to the study if below."""
    own = [path for path in closure(file.resolve(), folder) if not path.is_relative_to(PACKAGE)]
    below = folder.resolve()
    found = [Path(path) for path in read_by(own, folder)]
    return [str(path.relative_to(below) if path.is_relative_to(below) else path) for path in found]


def script_files(cell: TrainCell) -> list[Path]:
    """Return the script of a cell, and what runs and reads it; nothing where it has none."""
    if (script := script_of(cell)) is None:
        return []
    return [(script_workload(cell).folder / script.file).resolve(), *RUNNING]
