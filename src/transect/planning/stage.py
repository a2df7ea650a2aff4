"""A stage as planning sees it: its section of a study, its cells, and what they depend on.

`transect/stages/NAME.py`, or `NAME/stage.py` there or in a plug-in folder, registers one class.
Planning asks these questions and knows no stage by name.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from transect.domain.cell import GPU_PROVIDERS, Cell
from transect.domain.errors import BadInput, unknown_name
from transect.domain.pairs import PairRule
from transect.domain.registry import Registry, StageRegistry
from transect.domain.study import Section
from transect.domain.system import System
from transect.domain.takes import Takes

if TYPE_CHECKING:
    from transect.planning.context import Context

C = TypeVar("C", bound=Cell)


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Which cells share an allocation block."""

    # Name of the blocks and of their rule; empty: the stage's own.
    group: str = ""
    # Cells that are compared within one workload stay on one set of nodes.
    by_workload: bool = False
    # Runs where Snakemake runs: it reads files, and needs no node.
    local: bool = False


class Stage(ABC, Generic[C]):
    """What a stage declares of itself and of its cells, which are of class C.

    Required are `environment`, and `payload` or `runner`. The rest has defaults: a stage says what differs.
    """

    # What runs for a cell, as `package.module:function`; see `transect.payloads`.
    payload: ClassVar[str] = ""
    # Who starts it and reads what it left, as `package.module:class`: an `engine.stage_helpers.StageRunner`, where one
    # process that leaves `result.json` is not all there is to it.
    runner: ClassVar[str] = ""
    # What it reads of other cells, by the role that they play: see `inputs`.
    takes: ClassVar[Mapping[str, Takes]] = {}
    # A disturbed measurement is repeated; a disturbed computation is not.
    measures: ClassVar[bool] = False
    # Names or patterns of files in a cell's folder with which a second attempt at the same work goes on, such as a
    # checkpoint, and below it, with all of the folder that they are in; without them an interrupted cell begins again.
    keeps: ClassVar[tuple[str, ...]] = ()

    # Its key in a study; none: cells only where others need them.
    key: ClassVar[str] = ""
    # The model under the key.
    section: ClassVar[type[Section] | None] = None
    # Stages whose cells it takes something from.
    needs: tuple[str, ...] = ()
    # Stages whose cells it looks at when its own are made, and some of which run after those.
    precedes: ClassVar[tuple[str, ...]] = ()
    # How its cells are put into blocks, and where these run.
    placement: ClassVar[Placement] = Placement()
    # Which of its points are compared, and by what: planned before a study runs, measured in turn, and measured on
    # until it is known where the study says so.
    pairs: tuple[PairRule, ...] = ()
    # Whether its payload may spread over ranks and nodes: networks and MPI of the system matter.
    spreads: ClassVar[bool] = False

    @abstractmethod
    def environment(self, cell: C) -> str:
        """Return the environment that the cell runs in; empty for the driver's own."""

    def check(self, section: Any, context: Context) -> None:
        """Check names against the registries. Raises BadInput with `context.where(key)`."""

    def size(self, section: Any) -> int:
        """Return how many cells the section may ask for, without making any.

        The default takes each list of each of the section's `grids` for a dimension, and counts `repeats`. A stage
        whose grids mean something else says so; what it does not count here is counted as its cells are made.
        """
        total = 0
        for grid in getattr(section, "grids", ()):
            lists = (value for _, value in grid if isinstance(value, list))
            repeats: int = getattr(grid, "repeats", None) or getattr(section, "repeats", 1) or 1
            total += math.prod(max(1, len(values)) for values in lists) * repeats
        return total

    def cells(self, section: Any, context: Context) -> Iterable[C]:
        """Return the cells that the section asks for; those of `needs` and `precedes` are there."""
        return ()

    def inputs(self, cell: C, context: Context) -> dict[str, Cell]:
        """Return the cells that a cell takes something from, by role.

        A cell that no section asks for is planned because it is needed here.
        """
        return {}

    def taken(self, role: str) -> Takes:
        """Return what is read of the cell that plays a role. Raises BadInput for one that `takes` does not have."""
        try:
            return self.takes[role]
        except KeyError:
            known = ", ".join(self.takes) or "none"
            raise BadInput(
                f"stage {type(self).__name__}: `inputs` has a cell that plays the role '{role}', and `takes` has: {known}"
            ) from None

    def before(self, cell: C, context: Context) -> Iterable[Cell]:
        """Return planned cells of stages in `precedes` that do not begin before this one has a record.

        They take nothing from it: what becomes of it makes none of them stale.
        """
        return ()

    def plugins(self, cell: C) -> list[tuple[Registry[Any], str]]:
        """Return the plug-ins that the cell runs: their files are hashed, their `supports` called."""
        return []

    def supports(self, cell: C) -> str | None:
        """Return why the cell cannot run, beyond what its plug-ins say, or None."""
        return None

    def refuses(self, cell: C, spec: dict[str, Any]) -> str | None:
        """Return why its payload would skip the cell, given its spec, or None: what `transect check` can tell before."""
        return None

    def spec(self, cell: C, context: Context) -> dict[str, Any]:
        """Return what the payload gets besides cell, inputs and limits."""
        return {}

    def sources(self, cell: C) -> list[Path]:
        """Return files that the payload runs besides plug-ins and its own: roots of the closure."""
        return []

    def launchers(self, cell: C, system: System) -> tuple[str, ...]:
        """Return the names of the launchers that start the payload."""
        return ("plain",)

    def other_environments(self, cell: C) -> Iterable[str]:
        """Return other environments whose programs the payload starts."""
        return ()

    def programs(self, cell: C) -> Mapping[str, str]:
        """Return the environments of programs that the payload starts, by names that it knows them by.

        A payload with programs is a process of the driver; `spec["run"]["programs"]` says how each is started.
        """
        return {}

    def files(self, spec: dict[str, Any]) -> list[Path]:
        """Return files and folders from outside: the cell runs again when one changes."""
        return []

    def made_up(self, spec: dict[str, Any]) -> str:
        """Say what a cell makes up, as the study allows, because a file is not there; empty where nothing is."""
        return ""

    def offers(self) -> Iterable[tuple[str, str, str]]:
        """Return what this machine has for the stage, for `transect doctor`.

        Each is a name, `available` or `skipped`, and a detail.
        """
        return ()

    def gpus(self, cell: C) -> int:
        """Return the GPUs that a cell needs on each node: one for each rank, or one for its provider."""
        return cell.ranks_per_node if cell.device == "cuda" else int(cell.get("provider") in GPU_PROVIDERS)


def points(**lists: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the cross product of the lists of a grid, each point as axes by name; the last list runs fastest.

    >>> list(points(batch=[1, 8], threads=[2]))
    [{'batch': 1, 'threads': 2}, {'batch': 8, 'threads': 2}]
    """
    for values in product(*lists.values()):
        yield dict(zip(lists, values, strict=True))


# It names a module, a folder beside those of the plan, and a rule.
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_TAKEN = ("specs", "blocks", "damaged", "all", "make_environment", "make_report", "check_strict")

STAGES: StageRegistry[Stage[Any]] = StageRegistry("stage", Stage)


def ordered_stages() -> list[tuple[str, Stage[Any]]]:
    """Return each stage with its name, after those whose cells it asks for. Raises BadInput for a wrong declaration."""
    stages = {name: STAGES.get(name) for name in STAGES}
    faults = [
        f"{STAGES.source(name)}: stage '{name}' {fault}" for name in stages for fault in _faults(name, stages[name])
    ]
    if faults:
        raise BadInput(*faults)
    order = _sorted({name: {*stage.needs, *stage.precedes} for name, stage in stages.items()})
    return [(name, stages[name]) for name in order]


def _faults(name: str, stage: Stage[Any]) -> Iterator[str]:
    """Yield what is wrong with a declaration."""
    for given in (name, stage.placement.group or name):
        if not _NAME.fullmatch(given.replace("-", "_")) or given in _TAKEN:
            yield (
                f"cannot have the name or group '{given}': expected letters, digits and - for a module's _, and none "
                f"of {', '.join(_TAKEN)}"
            )
    if not (stage.payload or stage.runner):
        yield "has neither a `payload` nor a `runner`"
    if bool(stage.key) != (stage.section is not None):
        yield "has only one of `key` and `section`: expected both, or none"
    for member, names in (("needs", stage.needs), ("precedes", stage.precedes), ("keeps", stage.keeps)):
        if isinstance(names, str):
            yield f"has the text '{names}' as its `{member}`: expected a tuple, ('{names}',)"
        elif member != "keeps":
            yield from (f"{member} an {unknown_name('stage', name, STAGES)}" for name in names if name not in STAGES)
    if hasattr(stage, "comparison"):
        yield "has a `comparison`, which is nothing any more: expected `pairs`, transect.domain.pairs.PairRule(…) each"
    for role, taken in stage.takes.items():
        if not isinstance(taken, Takes):
            yield f"takes as its {role} {taken!r}: expected transect.domain.takes.Takes(NAME, …)"


def running_order() -> list[str]:
    """Return the names of all stages, each after those that it needs and those that precede it."""
    stages = {name: STAGES.get(name) for name in STAGES}
    graph = {name: set(stage.needs) for name, stage in stages.items()}
    for name, declared in stages.items():
        for later in declared.precedes:
            graph[later].add(name)
    return _sorted(graph)


def _sorted(graph: dict[str, set[str]]) -> list[str]:
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise BadInput(f"stages need each other in a circle: {circle}") from None
