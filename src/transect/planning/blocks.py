"""Allocation blocks: cells of one shape that run one after another in one Slurm job.

A job costs seconds before its payload starts, so short cells share an allocation; cells that
will be compared then also share their nodes. Cells stay the unit of change: the block's runner
keeps every record that still holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.files import digest
from transect.domain.study import Limits
from transect.domain.system import System
from transect.planning.plan import Planned, StudyPlan

__all__ = ["Block", "Shape", "make_blocks", "resources"]

# Short stages that need each other anyway share one job.
_TOGETHER = {"data": "prepare", "reference": "prepare"}
# Run by the driver: they read files, and need no node.
_LOCAL = ("ingest",)
# Starting a payload and writing its record, on a slow shared file system.
_CELL_OVERHEAD_S = 5.0
# The two Snakemakes of a job and its runner, besides the payload.
_RUNNER_MB = 700


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Shape:
    """What an allocation offers: cells of one shape can share one."""

    group: str
    nodes: int
    gpus_per_node: int
    pairing: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Cells of one job, in the order in which they run. `cores` are per node."""

    id: str
    shape: Shape
    cells: tuple[Planned, ...]
    cores: int
    minutes: int

    @property
    def rule(self) -> str:
        """The name of its rule: Slurm shows it in a job's comment."""
        return self.id.replace(".", "_").replace("-", "_")

    @property
    def fingerprint(self) -> str:
        """Changes when any of its cells does."""
        return digest([p.fingerprint for p in self.cells])[:16]

    def key(self) -> list[list[str]]:
        """Return stage and id of each cell, in order."""
        return [[p.cell.stage, p.id] for p in self.cells]


def _gpus(cell: Cell) -> int:
    """GPUs that a cell needs on each node: one per rank."""
    if cell.device == "cuda":
        return cell.ranks_per_node
    return 1 if cell.provider == "cuda" else 0


def _shape(cell: Cell, system: System) -> Shape:
    group = _TOGETHER.get(cell.stage, cell.stage)
    # Cells are compared within one workload, so one workload stays on one set of nodes.
    # Without any GPU the cell runs where all do, and its record says that there is none.
    gpus = _gpus(cell) if system.gpus_per_node else 0
    pairing = "" if group in ("prepare", "export", "bench") else str(cell.workload)
    return Shape(group=group, nodes=cell.nodes, gpus_per_node=gpus, pairing=pairing)


def _seconds(limits: Limits) -> float:
    repeats = limits.repeats_if_disturbed
    again = repeats * min(limits.seconds, limits.repeat_seconds)
    return limits.seconds + again + _CELL_OVERHEAD_S


def _check(planned: Planned, system: System) -> None:
    cell, shape = planned.cell, _shape(planned.cell, system)
    for asked, offered, what in (
        (cell.nodes, system.nodes, "nodes"),
        (shape.gpus_per_node, system.gpus_per_node, "gpus_per_node"),
    ):
        if asked > offered:
            raise BadInput(
                f"cell {planned.id} asks for {asked} {what.replace('_per_node', ' per node')}, "
                f"system '{system.name}' has {what}: {offered}"
            )


def _check_memory(system: System, limits: Limits) -> None:
    node, cell = system.memory_mb_per_node, limits.memory_mb
    if node is not None and cell is not None and cell + _RUNNER_MB > node:
        raise BadInput(
            f"limits.memory_mb: a cell may hold {cell} MB on a node and its runner {_RUNNER_MB} MB, "
            f"system '{system.name}' has memory_mb_per_node: {node}"
        )


def make_blocks(plan: StudyPlan) -> list[Block]:
    """Share the plan's cells out to jobs. Raises BadInput for a cell that the system cannot hold.

    Cells of one shape are cut where their time limits would exceed the system's
    `block_minutes`, or at its `cells_per_job`.
    """
    system, limits = plan.system, plan.study.limits
    each = _seconds(limits)
    room = max(1, int(system.block_minutes * 60 / each))
    if system.cells_per_job is not None:
        room = min(room, system.cells_per_job)
    shapes: dict[Shape, list[Planned]] = {}
    for planned in plan:
        if planned.cell.stage not in _LOCAL:
            _check(planned, system)
            shapes.setdefault(_shape(planned.cell, system), []).append(planned)
    stages = list(plan.cells)
    _check_memory(system, limits)
    blocks = []
    for shape in sorted(shapes):
        # In one job what feeds others runs first, and the rest in the study's random order.
        ordered = sorted(shapes[shape], key=lambda p: (_turn(p.cell.stage, stages), p.order))
        for number, start in enumerate(range(0, len(ordered), room)):
            cells = tuple(ordered[start : start + room])
            parts = [shape.group, shape.pairing, f"n{shape.nodes}"]
            parts += [f"g{shape.gpus_per_node}"] if shape.gpus_per_node else []
            parts += [str(number)] if len(ordered) > room else []
            minutes = math.ceil(len(cells) * each / 60) + system.overhead_minutes
            blocks.append(
                Block(
                    id=".".join(part for part in parts if part),
                    shape=shape,
                    cells=cells,
                    cores=_cores(cells, system),
                    minutes=minutes,
                )
            )
    return blocks


def _turn(stage: str, stages: list[str]) -> int:
    return ("data", "reference").index(stage) if stage in _TOGETHER else 2 + stages.index(stage)


def _cores(cells: Iterable[Planned], system: System) -> int:
    """Cores per node that the largest cell uses, at most what a node has."""
    most = max(p.cell.ranks_per_node * p.cell.threads for p in cells)
    if system.exclusive and system.cores_per_node:
        return system.cores_per_node
    return min(most, system.cores_per_node or most)


def resources(block: Block, system: System, limits: Limits) -> dict[str, Any]:
    """Return Snakemake's resources for a block's job, as the Slurm executor reads them."""
    shape = block.shape
    found: dict[str, Any] = {
        "nodes": shape.nodes,
        # One task per node is asked for with all its cores; the steps inside lay out ranks.
        "tasks": shape.nodes,
        "cpus_per_task": block.cores,
        "runtime": block.minutes,
        # The key alone keeps the executor from wrapping the job in `srun -n1`; an empty value
        # keeps it from asking for more than one task.
        "mpi": "",
    }
    memory = system.memory_mb_per_node
    if memory is None and limits.memory_mb is not None:
        memory = limits.memory_mb + _RUNNER_MB
    if memory is not None:
        found["mem_mb"] = memory
    partition = (shape.gpus_per_node and system.gpu_partition) or system.partition
    for key, value in (
        ("slurm_partition", partition),
        ("slurm_account", system.account),
        ("qos", system.qos),
        ("constraint", system.constraint),
    ):
        if value is not None:
            found[key] = value
    if shape.gpus_per_node:
        kind = f"{system.gpu_type}:" if system.gpu_type else ""
        found["gres"] = f"gpu:{kind}{shape.gpus_per_node}"
        # 0: the executor would otherwise ask for `tasks` tasks on each GPU.
        found["tasks_per_gpu"] = 0
    extra = ["--ntasks-per-node=1"]
    if system.exclusive:
        extra.insert(0, "--exclusive")
    found["slurm_extra"] = " ".join(extra)
    return found
