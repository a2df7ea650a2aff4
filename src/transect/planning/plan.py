"""The plan of a study: every cell with its spec, what it depends on, and when it is stale.

The Snakefile makes the plan once per call; it imports nothing heavier than pydantic.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest, write_if_changed
from transect.domain.paths import ROOT, StudyPaths
from transect.domain.registry import PLUGINS_VARIABLE
from transect.domain.strict_yaml import load_model
from transect.domain.study import Study
from transect.domain.system import System
from transect.planning.code_hash import code_hash
from transect.planning.environments import lock_hash
from transect.planning.expand import dataset_paths, expand, plain, reference_of, repeats
from transect.planning.sources import environment_of, launcher_source, source_hash
from transect.training.workloads import Parameters

__all__ = ["Planned", "StudyPlan", "find_study", "find_system", "load_study", "make_plan"]


@dataclass(frozen=True, slots=True)
class Planned:
    """One cell of a plan. `inputs` maps a role to the id of the cell it takes it from."""

    cell: Cell
    id: str
    environment: str
    inputs: dict[str, tuple[str, str]]
    spec: dict[str, Any]
    fingerprint: str
    order: int


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """All cells of a study by stage and id."""

    study: Study
    system: System
    file: Path
    paths: StudyPaths
    cells: dict[str, dict[str, Planned]]

    def stage(self, name: str) -> dict[str, Planned]:
        """Return the cells of one stage by id; empty when it has none."""
        return self.cells.get(name, {})

    def __iter__(self) -> Any:
        return (planned for stage in self.cells.values() for planned in stage.values())

    def write_specs(self) -> int:
        """Write each spec that changed, and the plan; return how many changed."""
        table = {f"{p.cell.stage}/{p.id}": p.fingerprint for p in self}
        try:
            old = json.loads(self.paths.plan.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            old = {}
        changed = 0
        for planned in self:
            path = self.paths.spec(planned.cell.stage, planned.id)
            key = f"{planned.cell.stage}/{planned.id}"
            if old.get(key) != table[key] or not path.exists():
                changed += write_if_changed(path, json.dumps(planned.spec, indent=1) + "\n")
        # Gone cells: their specs go, their records stay until somebody cleans up.
        for key in old.keys() - table.keys():
            stage, _, cell_id = key.partition("/")
            self.paths.spec(stage, cell_id).unlink(missing_ok=True)
        write_if_changed(self.paths.plan, json.dumps(table, indent=0) + "\n")
        return changed


def find_study(given: str) -> Path:
    """Return the file of a study given by name or path."""
    path = Path(given)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return path.resolve()
    return ROOT / "config" / "studies" / f"{given}.yaml"


def find_system(given: str) -> Path:
    """Return the file of a system given by name or path."""
    path = Path(given)
    if path.suffix in (".yaml", ".yml"):
        return path.resolve()
    return ROOT / "config" / "systems" / f"{given}.yaml"


def load_study(path: Path) -> Study:
    """Read a study and make its plug-in folders known to this process and its children."""
    study = load_model(path, Study)
    folders = [str((path.parent / folder).resolve()) for folder in study.plugins]
    present = [part for part in os.environ.get(PLUGINS_VARIABLE, "").split(os.pathsep) if part]
    for folder in folders:
        if not Path(folder).is_dir():
            raise BadInput(f"{path}: key 'plugins': {folder}: no such folder")
    os.environ[PLUGINS_VARIABLE] = os.pathsep.join(dict.fromkeys(present + folders))
    return study


def _inputs(cell: Cell, ids: dict[tuple[Any, ...], str]) -> dict[str, tuple[str, str]]:
    """Return which cells' outputs a cell takes, by role."""

    def at(stage: str, *key: Any) -> tuple[str, str]:
        return (stage, ids[(stage, *key)])

    match cell.stage:
        case "reference":
            return {"data": at("data", cell.workload)}
        case "train":
            found = {"data": at("data", cell.workload)}
            reference = reference_of(cell).id
            # A workload whose reference would take days goes without.
            if ("reference", reference) in ids:
                found["reference"] = ("reference", reference)
            return found
        case "export":
            return {
                "data": at("data", cell.workload),
                "weights": at("train", cell.workload, cell.framework),
            }
        case "infer":
            first = next(key for key in ids if key[:2] == ("export", cell.workload))
            exporter = cell.exporter or first[2]
            export = at("export", cell.workload, exporter)
            framework = next(k[2] for k in ids if k[:2] == ("train", cell.workload) and len(k) == 3)
            return {"export": export, "weights": at("train", cell.workload, framework)}
    return {}


def _index(cells: list[Cell], framework: str) -> dict[tuple[Any, ...], str]:
    ids: dict[tuple[Any, ...], str] = {}
    for cell in cells:
        match cell.stage:
            case "data":
                ids["data", cell.workload] = cell.id
            case "export":
                ids["export", cell.workload, cell.exporter] = cell.id
            case "reference":
                ids["reference", cell.id] = cell.id
            case "train":
                if cell.framework == framework and plain(cell):
                    ids.setdefault(("train", cell.workload, cell.framework), cell.id)
    return ids


def _spec(
    cell: Cell,
    study: Study,
    system: System,
    parameters: Parameters | None,
    precisions: dict[str, set[str]],
) -> dict[str, Any]:
    """Return what one cell's payload is told: nothing in it may change without a reason to rerun."""
    spec: dict[str, Any] = {"study": study.name, "cell": cell.axes(), "cell_id": cell.id}
    values = parameters.model_dump() if parameters else {}
    if cell.stage == "data":
        # What the split, the order and the initial weights depend on, and no more.
        used = ("batch", "epochs", "test_fraction", "dataset_options")
        spec |= {
            "workload": cell.workload,
            "seed": study.seed,
            "repeats": repeats(study),
            "parameters": {key: values[key] for key in used},
            "dataset_paths": list(dataset_paths(cell.workload)),
        }
    elif values:
        spec["parameters"] = values
    if cell.stage == "reference":
        # Those in which the cells that it stands for are trained.
        spec["precisions"] = sorted(precisions[cell.id])
    if cell.stage == "infer":
        infer = study.infer
        spec["limits"] = {
            "warmup": infer.warmup, "min_runs": infer.min_runs, "max_seconds": infer.max_seconds,
        }  # fmt: skip
    spec["cell_limits"] = study.limits.model_dump()
    spec["system"] = _system_spec(cell, system)
    return spec


def _system_spec(cell: Cell, system: System) -> dict[str, Any]:
    """Return the facts of the system on which a cell's outcome depends.

    Where it queues is none of them: a new account or partition makes nothing stale.
    """
    spec = system.model_dump(include={"launcher", "mpi_launcher", "cores_per_node"})
    if cell.stage in ("train", "bench"):
        if system.scheduler != "none":
            spec |= system.model_dump(include={"scheduler", "mpi_type", "physical_cores"})
        name = cell.network or system.network
        if name is not None and cell.ranks > 1:
            spec["network"] = system.networks[name].model_dump(exclude={"description"})
    if cell.benchmark in system.benchmarks:
        spec["program"] = system.benchmarks[str(cell.benchmark)].model_dump(exclude={"python"})
    if system.modules:
        spec["modules"] = system.modules
    if system.scratch:
        spec["scratch"] = system.scratch
    return spec


def _check_networks(cells: list[Cell], system: System, where: Path, system_file: Path) -> None:
    for cell in cells:
        if cell.network is not None and cell.network not in system.networks:
            known = ", ".join(system.networks) or "none"
            raise BadInput(
                f"{where}: network '{cell.network}' is not among the networks of {system_file} "
                f"({known})"
            )


def _ingest_paths(study: Study, where: Path) -> dict[str, Path]:
    found = {}
    for given in study.ingest.paths:
        path = (where.parent / given).resolve()
        if not path.exists():
            raise BadInput(f"{where}: key 'ingest.paths': {path}: no such file or folder")
        found[path.name] = path
    return found


def make_plan(study_file: Path, system_file: Path, results: Path) -> StudyPlan:
    """Expand, check and fingerprint. Raises BadInput with everything that a run would say."""
    study = load_study(study_file)
    system = load_model(system_file, System)
    cells, parameters = expand(study, study_file)
    _check_networks(cells, system, study_file, system_file)
    ids = _index(cells, study.export.framework)
    launchers = [
        code_hash([launcher_source(name, f"{system_file}: {key}")])
        for key, name in (("launcher", system.launcher), ("mpi_launcher", system.mpi_launcher))
    ]
    logs = _ingest_paths(study, study_file)
    shuffled = list(range(len(cells)))
    random.Random(study.seed).shuffle(shuffled)
    precisions: dict[str, set[str]] = {}
    for cell in cells:
        if cell.stage == "train":
            precisions.setdefault(reference_of(cell).id, set()).add(cell.precision)
    planned: dict[str, dict[str, Planned]] = {}
    for cell, order in zip(cells, shuffled, strict=True):
        spec = _spec(cell, study, system, parameters.get(str(cell.workload)), precisions)
        inputs = _inputs(cell, ids)
        spec["inputs"] = {role: list(source) for role, source in inputs.items()}
        if cell.source:
            spec["path"] = str(logs[cell.source])
        environment = environment_of(cell)
        spec["environment"] = environment
        choice = system.environments.get(environment)
        lock = lock_hash(environment, choice) if environment else ""
        sources = [source_hash(cell), *(launchers if cell.stage == "train" else ())]
        fingerprint = digest([canonical_json(spec), *sources, lock])[:16]
        spec["fingerprint"] = fingerprint
        # For the record only: an edit of these words makes nothing stale.
        spec["about"] = system.model_dump(include={"name", "description", "interconnect"})
        planned.setdefault(cell.stage, {})[cell.id] = Planned(
            cell, cell.id, environment, inputs, spec, fingerprint, order
        )
    paths = StudyPaths(results=results, study=study.name)
    return StudyPlan(study, system, study_file, paths, planned)
