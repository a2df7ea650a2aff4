"""What stages can see while a study is planned."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from transect.domain.axes.train import Hyperparameters, changed_hyperparameters
from transect.domain.cell import Cell
from transect.domain.counts import Machine
from transect.domain.errors import Complaints
from transect.domain.registry import Registry
from transect.domain.study import Study
from transect.domain.system import System
from transect.measure.provenance import available_cores
from transect.measure.provenance import gpus as find_gpus
from transect.planning.pairs import StagePairs
from transect.planning.parameters import resolve
from transect.training.workloads import WORKLOADS, Parameters

# What a step computes, but for its batch, which is an axis.
_OF_A_STEP = (
    "optimiser",
    "momentum",
    "weight_decay",
    "decay",
    "beta1",
    "beta2",
    "alpha",
    "epsilon",
    "loss",
    "label_smoothing",
    "delta",
)

# Stands for a system whose file cannot be used: nothing that depends on it is held against a study.
NO_SYSTEM = System(name="unknown")


def machine_of(system: System) -> Machine | None:
    """Return how far a study's lists grow on a system; None where there is none.

    Cores that its file does not say are this machine's, unless a scheduler runs the cells elsewhere.
    """
    if system is NO_SYSTEM:
        return None
    here = available_cores() if system.scheduler == "none" else None
    return Machine(system=system.name, nodes=system.nodes, cores=system.cores_per_node or here)


class Context:
    """Study, system and the cells that are planned by now."""

    def __init__(self, study: Study, file: Path, system: System, complaints: Complaints | None = None) -> None:
        self.study, self.file, self.system = study, file, system
        # What is wrong with the study: checks note it here, so that all of it is told at once.
        self.complaints = complaints or Complaints()
        # Of names: they are wrong whatever other parts of the study say.
        self._of_names = self.complaints
        self.cells: dict[str, list[Cell]] = defaultdict(list)
        self._parameters: dict[tuple[str, Hyperparameters], Parameters] = {}
        self.left_out = 0
        self._values: dict[tuple[str, Hyperparameters], dict[str, Any]] = {}
        # Repeats that may not be needed, and what only they need; least and most of a cell's repeats.
        self.optional: set[Cell] = set()
        self.repeats: dict[Cell, tuple[int, int]] = {}
        # What is compared, by stage.
        self.pairs: dict[str, StagePairs] = {}
        self._takers: dict[Cell, list[Cell]] = defaultdict(list)
        self._indices: dict[tuple[str, Callable[..., Hashable]], dict[Hashable, list[Cell]]] = {}

    def section(self, key: str) -> Any:
        """Return a section of the study, whatever the class of the study is called."""
        return getattr(self.study, key)

    def where(self, key: str) -> str:
        """Return how a message begins: the study's file and a key."""
        return f"{self.file}: {key}"

    def knows(self, registry: Registry[Any], names: Iterable[str], key: str) -> bool:
        """Whether a registry has all names that stand under a key of the study; note those that it has not."""
        before = self.unknown
        for name in names:
            with self.naming():
                registry.get(name, self.where(key))
        return self.unknown == before

    @property
    def unknown(self) -> int:
        """How many complaints there are by now, of names that no stage knows among them."""
        return len(self._of_names)

    def naming(self) -> AbstractContextManager[None]:
        """Note a BadInput for names that no other part of the study could make right, in place of passing it on."""
        return self._of_names.noted()

    @contextmanager
    def names_only(self) -> Iterator[None]:
        """Note nothing but names: all else that is wrong may come from what is wrong in a stage before."""
        noted, self.complaints = self.complaints, Complaints()
        try:
            with self.complaints.noted():
                yield
        finally:
            self.complaints = noted

    def parameters(self, workload: str, changes: Hyperparameters = ()) -> Parameters:
        """Return a workload's hyper-parameters with the study's changes, and with those of a cell."""
        key = workload, changes
        if key not in self._parameters:
            override = self.study.workloads.get(workload, {}) | changed_hyperparameters(changes)
            self._parameters[key] = resolve(workload, override, self.file)
        return self._parameters[key]

    def values(self, workload: str, changes: Hyperparameters = ()) -> dict[str, Any]:
        """Return the hyper-parameters as JSON holds them. Shared: not to be changed."""
        key = workload, changes
        if key not in self._values:
            self._values[key] = self.parameters(workload, changes).model_dump()
        return self._values[key]

    def step_values(self, workload: str) -> dict[str, Any]:
        """Return them with the workload's own in place of those that no step's time and memory depend on."""
        values, defaults = self.values(workload), WORKLOADS.get(workload).defaults.model_dump()
        return defaults | {name: values[name] for name in _OF_A_STEP}

    def first(self, stage: str, key: Callable[..., Hashable], wanted: Hashable) -> Cell | None:
        """Return the first planned cell of a stage for which `key(cell)` is `wanted`, or None.

        `key` is one function for all calls (no new lambda in each): an index is kept for it, and
        it gives None for cells that are never wanted. Cells are looked at when all of the stage's
        are planned, so only one in `needs` or `precedes` may be asked for.
        """
        found = self.all_of(stage, key, wanted)
        return found[0] if found else None

    def all_of(self, stage: str, key: Callable[..., Hashable], wanted: Hashable) -> list[Cell]:
        """Return every planned cell of a stage for which `key(cell)` is `wanted`; as `first` says.

        In `inputs` a stage may ask for its own cells too.
        """
        index = self._indices.get((stage, key))
        if index is None:
            index = defaultdict(list)
            for cell in self.cells[stage]:
                index[key(cell)].append(cell)
            self._indices[stage, key] = index
        return index.get(wanted, [])

    def fits(self, cell: Cell, gpus: int) -> bool:
        """Whether a cell with `gpus` on each node fits the system, without sharing the cores of a node.

        One that does not is counted in `left_out`, and reported.
        What the system's file does not say is taken from this machine; of a cluster, cores that it does not say leave nothing out.
        """
        fits = (
            cell.nodes <= self.system.nodes
            and cell.ranks_per_node * cell.threads <= self._cores
            and (gpus == 0 or gpus <= self._gpus)
        )
        self.left_out += not fits
        return fits

    def may_be_compared(self, cell: Cell, gpus: int) -> bool:
        """Whether it fits, also where all nodes are one machine: nothing is claimed of ranks that share cores."""
        left_out, physical = self.left_out, self.system.physical_cores
        fits = self.fits(cell, gpus)
        self.left_out = left_out
        return fits and (physical is None or cell.ranks * cell.threads <= physical)

    @cached_property
    def _cores(self) -> float:
        # Where the cores of a cluster's nodes are unknown, nothing is left out.
        machine = machine_of(self.system)
        return machine.cores if machine and machine.cores else math.inf

    @cached_property
    def _gpus(self) -> int:
        return self.system.gpus_per_node or len(find_gpus())

    def note_taker(self, taken: Cell, by: Cell) -> None:
        """Remember which cell takes something from which."""
        self._takers[taken].append(by)

    def takers(self, cell: Cell) -> Iterable[Cell]:
        """Return the cells that take something from a cell; complete once all are planned."""
        return self._takers.get(cell, ())
