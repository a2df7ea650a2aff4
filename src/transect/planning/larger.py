"""What a study would have besides on a larger machine: more cores or nodes, or a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transect.domain.cell import Cell
from transect.domain.errors import BadInput, Complaints
from transect.domain.system import System
from transect.measure.provenance import gpus as find_gpus
from transect.planning.context import Context, machine_of
from transect.planning.expand import expand
from transect.planning.study import read_study

# Doublings of what there is that are tried.
_STEPS = 5
_WORDS = {"nodes": "nodes", "cores_per_node": "cores on a node", "gpus_per_node": "GPUs on a node"}
_AXES = {"ranks_per_node": "ranks", "threads": "threads", "nodes": "nodes", "batch": "batch"}


@dataclass(frozen=True, kw_only=True)
class Addition:
    """How many cells a study would have besides with so many cores, nodes or GPUs, and what is new among their axes."""

    what: str
    cells: int
    new: dict[str, list[int]]

    def __str__(self) -> str:
        new = "; ".join(f"{axis} {', '.join(map(str, values))}" for axis, values in self.new.items())
        return f"{self.what}: {self.cells} more cell{'s' * (self.cells > 1)}{f' ({new})' if new else ''}"


def _cells(file: Path, system: System) -> set[Cell]:
    complaints = Complaints()
    study, broken = read_study(file, complaints, machine_of(system))
    context = Context(study, file, system, complaints)
    expanded = expand(context, broken)
    complaints.end()
    return {cell for stage in expanded.values() for cell, _ in stage.values()}


def additions(file: Path, system: System) -> Iterator[Addition]:
    """Yield what each doubling of a node's cores and of the nodes would add to a study, and GPUs where there are none.

    A doubling that adds nothing to the one before it is left out; so is one for which the study cannot be planned.
    """
    have = _cells(file, system)
    machine = machine_of(system)
    ladders = {"nodes": [system.nodes << step for step in range(1, _STEPS + 1)]}
    if machine is not None and machine.cores is not None:
        ladders["cores_per_node"] = [1 << (machine.cores.bit_length() + step) for step in range(_STEPS)]
    if not (system.gpus_per_node or find_gpus()):
        ladders["gpus_per_node"] = [1, 2, 4, 8]
    for key, counts in sorted(ladders.items()):
        before = 0
        for count in counts:
            try:
                more = _cells(file, system.model_copy(update={key: count})) - have
            except BadInput:
                continue
            if len(more) > before:
                before = len(more)
                what = f"{count} {_WORDS[key]}" if count > 1 else "a GPU"
                yield Addition(what=what, cells=before, new=_new(more, have))


def _new(more: set[Cell], have: set[Cell]) -> dict[str, list[int]]:
    found = {}
    for axis, word in _AXES.items():
        there = {cell.get(axis) for cell in have}
        if values := sorted({value for cell in more if isinstance(value := cell.get(axis), int)} - there):
            found[word] = values
    return found
