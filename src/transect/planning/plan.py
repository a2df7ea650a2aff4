"""The plan of a study: every cell with its spec, what it depends on, and when it is stale.

The Snakefile makes the plan once per call; it imports nothing heavier than pydantic.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from transect.domain.cell import Cell
from transect.domain.claims import Work
from transect.domain.errors import BadInput, Complaints
from transect.domain.files import canonical_json, digest
from transect.domain.paths import StudyPaths
from transect.domain.strict_yaml import load_model
from transect.domain.study import Study
from transect.domain.system import System
from transect.domain.until import AnalysisPlan
from transect.launch.images import in_container, parts_of
from transect.launch.wrapping import WRAPPERS
from transect.planning.claims import works_of
from transect.planning.code_hash import Sources
from transect.planning.context import NO_SYSTEM, Context, machine_of
from transect.planning.environments import lock_hash
from transect.planning.expand import expand, hook_of, precedences
from transect.planning.images import image_lock
from transect.planning.named_paths import NamedPaths
from transect.planning.parameters import dataset_paths
from transect.planning.sources import check_launchers, sources_of
from transect.planning.stage import STAGES, Stage
from transect.planning.study import read_study
from transect.planning.until import analysis_plan_of, repeat_until_spec
from transect.training.own_workload import definition_of, environment_of
from transect.training.workloads import WORKLOADS


@dataclass(frozen=True, slots=True)
class Planned:
    """One cell of a plan. `inputs` maps a role to stage and id of the cell it takes it from.

    `waits` are cells that have their records when it begins, though it takes nothing from them.
    """

    cell: Cell
    id: str
    environment: str
    inputs: dict[str, tuple[str, str]]
    spec: dict[str, Any]
    fingerprint: str
    order: int
    waits: tuple[tuple[str, str], ...] = ()
    # What it shares with the cells that take turns with it, in whichever repeat; empty: it takes none.
    heat: str = ""

    @property
    def after(self) -> tuple[tuple[str, str], ...]:
        """Stage and id of all cells that run before it."""
        return (*self.inputs.values(), *self.waits)

    @property
    def optional(self) -> bool:
        """Whether its runner decides that it is needed, and it may have no record in the end."""
        return bool(self.spec.get("optional"))

    @property
    def key(self) -> tuple[str, str]:
        """Stage and id."""
        return (self.cell.stage, self.id)

    @property
    def environments(self) -> dict[str, str]:
        """The lock hash of each environment that it needs, by name."""
        cell_environment: dict[str, str] = {self.environment: self.spec["lock"]} if self.environment else {}
        return {**cell_environment, **self.spec.get("other_environments", {})}


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """All cells of a study by stage and id, each after those that run before it."""

    study: Study
    system: System
    file: Path
    system_file: Path
    paths: StudyPaths
    cells: dict[str, dict[str, Planned]]
    # What the specs' source hashes stand for.
    sources: dict[str, Sources] = field(default_factory=dict)
    # Cells that grids with `where_it_fits` would have on a larger system.
    left_out: int = 0
    analysis_plan: AnalysisPlan = field(default_factory=AnalysisPlan)
    # Published works by name, and what decides their claims.
    works: dict[str, Work] = field(default_factory=dict)

    def stage(self, name: str) -> dict[str, Planned]:
        """Return the cells of one stage by id; empty when it has none."""
        return self.cells.get(name, {})

    def __iter__(self) -> Iterator[Planned]:
        return (planned for stage in self.cells.values() for planned in stage.values())


def _system_spec(cell: Cell, system: System) -> dict[str, Any]:
    """Return the facts of the system on which a cell's outcome depends.

    Where it queues is none of them: a new account or partition makes nothing stale.
    """
    spec = system.model_dump(include={"launcher", "mpi_launcher", "cores_per_node"})
    if STAGES.get(cell.stage).spreads:
        if system.scheduler != "none":
            spec |= system.model_dump(include={"scheduler", "mpi_type", "physical_cores"})
        name = cell.network or system.network
        if name is not None and cell.ranks > 1:
            # What it is said to carry changes nothing about what runs on it.
            words = {"description", "latency_s", "bytes_per_s"}
            spec["network"] = system.networks[name].model_dump(exclude=words)
    program = cell.get("benchmark")
    if program in system.benchmarks:
        spec["program"] = system.benchmarks[program].model_dump(exclude={"python"})
    if system.modules:
        spec["modules"] = system.modules
    if system.scratch:
        spec["scratch"] = system.scratch
    return spec


class _Planner:
    """Makes the specs; what many cells share is made once."""

    def __init__(self, context: Context, results: Path) -> None:
        self._context = context
        self._limits = context.study.limits.model_dump()
        # For the record only: an edit of these words makes nothing stale.
        about = {"name", "description", "interconnect", "step_energy"}
        self._about = context.system.model_dump(include=about)
        self._locks: dict[str, str] = {}
        self._systems: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.sources: dict[str, Sources] = {}
        self._paths = NamedPaths(context.file, results / context.study.name)

    def plan(self, cell: Cell, inputs: dict[str, Cell], order: int, waits: Iterable[Cell] = ()) -> Planned:
        """Return a cell with its spec and fingerprint. Raises BadInput for what its stage raises."""
        with hook_of(cell.stage):
            planned = self._plan(cell, inputs, order)
        # In no spec: when another cell ran changes nothing about this one.
        return replace(planned, waits=tuple((waited.stage, waited.id) for waited in waits))

    def _plan(self, cell: Cell, inputs: dict[str, Cell], order: int) -> Planned:
        context = self._context
        stage = STAGES.get(cell.stage)
        taken = {role: (source.stage, source.id) for role, source in inputs.items()}
        given = environment_of(cell.get("workload"), stage.environment(cell))
        parameters = stage.spec(cell, context)
        if not isinstance(given, str):
            raise BadInput(f"stage '{cell.stage}': `environment` gives {given!r:.100}: expected a name, or '' for none")
        environment = self._inside(cell, given)
        sources = sources_of(cell, stage, context.system, context.file.parent)
        self.sources[sources.hash] = sources
        spec: dict[str, Any] = {
            "study": context.study.name,
            "cell": cell.axes(),
            "cell_id": cell.id,
            "system": self._system(cell),
            "inputs": {role: list(source) for role, source in taken.items()},
            "environment": environment,
            "lock": self._lock(environment),
            "sources": sources.hash,
        }
        if taken_names := sorted(spec.keys() & parameters.keys()):
            raise BadInput(f"stage '{cell.stage}': `spec` has keys that every spec has: {', '.join(taken_names)}")
        spec |= parameters | definition_of(cell.get("workload"))
        others = sorted({self._inside(cell, name) for name in stage.other_environments(cell)} - {environment, ""})
        if others:
            spec["other_environments"] = {name: self._lock(name) for name in others}
        fingerprint = digest([canonical_json(spec)])[:16]
        named = self._named(cell, spec)
        # What else the runner gets: a change of these alone makes no record stale.
        spec |= {
            "fingerprint": fingerprint,
            "about": self._about,
            "cell_limits": self._limits,
            "taken": bool(context.takers(cell)),
        }
        if named:
            # No part of the fingerprint: what they hold is an input.
            spec["named"] = named
        if (repeat_until := repeat_until_spec(cell, stage, context)) is not None:
            spec["repeat_until"] = repeat_until
        if cell in context.optional:
            spec["optional"] = True
        pairs = context.pairs.get(cell.stage)
        if pairs is not None and (asked := pairs.asked(cell)):
            spec["pairs"] = [pair.stored() for pair in asked]
        heat = pairs.heat(cell) if pairs is not None else ""
        return Planned(cell, cell.id, environment, taken, spec, fingerprint, order, heat=heat)

    def _named(self, cell: Cell, spec: dict[str, Any]) -> list[str]:
        """Return the paths that its options name and that nobody else says it reads, sorted."""
        says = type(STAGES.get(cell.stage)).files is not Stage.files
        named = self._paths(spec, options_only=says)
        workload = cell.get("workload")
        # Those are its data stage's.
        declared = dataset_paths(workload) if named and workload in WORKLOADS else ()
        return sorted(path for path, key in named.items() if key not in declared)

    def _inside(self, cell: Cell, environment: str) -> str:
        """Return an environment's name, in the container that the cell or else the system asks for.

        What the system offers as modules or as an image stays as it is.
        """
        wrapper = cell.container or self._context.system.container
        if not wrapper or not environment or environment in self._context.system.environments:
            return environment
        WRAPPERS.get(wrapper, f"{self._context.file}: container")
        return in_container(environment, wrapper)

    def _lock(self, environment: str) -> str:
        if environment and environment not in self._locks:
            name, wrapper = parts_of(environment)
            choice = self._context.system.environments.get(name)
            self._locks[environment] = image_lock(name) if wrapper else lock_hash(name, choice)
        return self._locks.get(environment, "")

    def _system(self, cell: Cell) -> dict[str, Any]:
        key = (cell.stage, cell.network, cell.ranks > 1, cell.get("benchmark"))
        if key not in self._systems:
            self._systems[key] = _system_spec(cell, self._context.system)
        return self._systems[key]


def turns_within(cells: Mapping[str, Planned]) -> dict[tuple[str, str], int]:
    """Return how many of a stage's cells must run before each of them, one after another."""
    before = {
        planned.key: {key for key in planned.inputs.values() if key[0] == planned.cell.stage}
        for planned in cells.values()
    }
    turns: dict[tuple[str, str], int] = {}
    try:
        for key in TopologicalSorter(before).static_order():
            turns[key] = max((turns[earlier] + 1 for earlier in before[key]), default=0)
    except CycleError as error:
        circle = " -> ".join(cell_id for _, cell_id in error.args[1])
        raise BadInput(f"cells go on with each other in a circle: {circle}") from None
    return turns


def _in_turn(cells: dict[str, Planned]) -> dict[str, Planned]:
    """Put what others of the stage go on with before them."""
    turns = turns_within(cells)
    return dict(sorted(cells.items(), key=lambda item: turns[item[1].key]))


def make_plan(study_file: Path, system_file: Path, results: Path) -> StudyPlan:
    """Expand, check and fingerprint. Raises BadInput with everything that a run would say."""
    complaints = Complaints()
    system = NO_SYSTEM
    with complaints.noted():
        system = load_model(system_file, System)
        check_launchers(system, system_file)
    study, broken = read_study(study_file, complaints, machine_of(system))
    context = Context(study, study_file, system, complaints)
    expanded = expand(context, broken)
    waits = precedences(expanded, context)
    analysis_plan = analysis_plan_of(context)
    shuffled = list(range(sum(map(len, expanded.values()))))
    random.Random(study.seed).shuffle(shuffled)
    order = iter(shuffled)
    planner = _Planner(context, results)
    planned = {
        name: _in_turn(
            {
                cell_id: planner.plan(cell, inputs, next(order), waits.get(cell, ()))
                for cell_id, (cell, inputs) in cells.items()
            }
        )
        for name, cells in expanded.items()
    }
    paths = StudyPaths(results=results, study=study.name)
    more = planner.sources, context.left_out, analysis_plan, works_of(study, study_file)
    return StudyPlan(study, system, study_file, system_file, paths, planned, *more)
