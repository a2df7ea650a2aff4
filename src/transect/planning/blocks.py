"""Allocation blocks: cells of one shape that run one after another in one job.

A job costs seconds before its payload starts, and Snakemake milliseconds for each that it keeps,
so short cells share one; cells that will be compared then also share their nodes. Cells stay the
unit of change: the block's runner keeps every record that still holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest
from transect.domain.study import Limits
from transect.domain.system import System
from transect.planning.plan import Planned, StudyPlan, turns_within
from transect.planning.rounds import by_shape, cut, in_rounds
from transect.planning.stage import STAGES

# Used as Snakemake's wildcard constraint as well.
BLOCK_PATTERN = r"[A-Za-z0-9_.+~-]+"
# Of a workload's name in that of a block: a file's, and a folder's with Slurm's logs.
_MAX_LENGTH = 150
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
    local: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Cells of one job, in the order in which they run. `cores` are per node."""

    name: str
    shape: Shape
    cells: tuple[Planned, ...]
    cores: int
    minutes: int

    @property
    def rule(self) -> str:
        """The rule that runs it. One that asks for GPUs asks for more than others do."""
        name = re.sub(r"\W", "_", self.shape.group)
        return f"{name}_gpu" if self.shape.gpus_per_node else name

    @property
    def id(self) -> str:
        """Rule and name: how messages call it."""
        return f"{self.rule}.{self.name}"

    @property
    def fingerprint(self) -> str:
        """Changes when any of its cells does."""
        # Whether more repeats are needed is its runner's to say, and may have another answer now.
        repeat_until = [
            canonical_json([p.spec["repeat_until"], p.spec.get("pairs", ())])
            for p in self.cells
            if "repeat_until" in p.spec
        ]
        return digest([*(p.fingerprint for p in self.cells), *repeat_until])[:16]


def _shape(cell: Cell, system: System) -> Shape:
    stage = STAGES.get(cell.stage)
    placement = stage.placement
    # Without any GPU the cell runs where all do, and its record says that there is none.
    gpus = stage.gpus(cell) if system.gpus_per_node else 0
    # Cells are compared within one workload, so one workload stays on one set of nodes.
    return Shape(
        group=placement.group or cell.stage,
        # What is on several nodes takes no turns, and a block's guard looks at all of its nodes.
        nodes=cell.nodes,
        gpus_per_node=gpus,
        pairing=str(cell.workload) if placement.by_workload else "",
        local=placement.local,
    )


def _seconds(limits: Limits) -> float:
    repeats = limits.repeats_if_disturbed
    again = repeats * min(limits.seconds, limits.repeat_seconds)
    return limits.seconds + again + _CELL_OVERHEAD_S


def _check(planned: Planned, shape: Shape, system: System) -> None:
    for asked, offered, what in (
        (shape.nodes, system.nodes, "nodes"),
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
            f"system '{system.name}' has memory_mb_per_node: {node}: lower limits.memory_mb in the "
            f"study to {max(1, node - _RUNNER_MB)}, or ask for nodes with more memory"
        )


def _room(system: System, limits: Limits, cells: int) -> int:
    """Return how many cells one block takes; on a machine without a scheduler, all of a shape."""
    if system.scheduler == "none":
        return max(1, cells)
    room = max(1, int(system.block_minutes * 60 / _seconds(limits)))
    return room if system.cells_per_job is None else min(room, system.cells_per_job)


def make_blocks(plan: StudyPlan) -> list[Block]:
    """Share the plan's cells out to jobs. Raises BadInput for a cell that the system is too small for.

    Cells of one shape are cut where their time limits would exceed the system's
    `block_minutes`, or at its `cells_per_job`.
    """
    system, limits = plan.system, plan.study.limits
    scheduled = system.scheduler != "none"
    shapes = by_shape(plan, lambda p: _shape(p.cell, system), together=not scheduled)
    for shape, members in shapes.items():
        for planned in members if scheduled and not shape.local else ():
            _check(planned, shape, system)
    turns = {stage: turn for turn, stage in enumerate(plan.cells)}
    places = {key: place for cells in plan.cells.values() for key, place in turns_within(cells).items()}
    if scheduled:
        _check_memory(system, limits)
    blocks: list[Block] = []
    taken: set[tuple[str, str]] = set()
    for shape in sorted(shapes):
        ordered = in_rounds(shapes[shape], turns, places)
        parts = cut(ordered, _room(system, limits, len(ordered)))
        for number, cells in enumerate(parts):
            part = number if len(parts) > 1 else None
            block = Block(
                name=_name(shape, part),
                shape=shape,
                cells=cells,
                cores=_cores(cells, system),
                minutes=_minutes(cells, system, limits),
            )
            assert (block.rule, block.name) not in taken
            taken.add((block.rule, block.name))
            blocks.append(block)
    _check_order(blocks)
    return blocks


def _minutes(cells: Sequence[Planned], system: System, limits: Limits) -> int:
    """Return the time of a job: of all its cells, but of optional ones no more than a block may take."""
    required, every = (
        math.ceil(amount * _seconds(limits) / 60) for amount in (sum(not p.optional for p in cells), len(cells))
    )
    return max(required, min(every, system.block_minutes)) + system.overhead_minutes


def _check_order(blocks: Iterable[Block]) -> None:
    """Raise BadInput where two blocks wait for each other: a stage is placed in a wrong group."""
    block_of = {planned.key: block.id for block in blocks for planned in block.cells}
    needs = {
        block.id: {block_of[key] for planned in block.cells for key in planned.after} - {block.id} for block in blocks
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        raise BadInput(
            f"blocks need each other in a circle: {' -> '.join(error.args[1])}: stages whose cells "
            "stand on both sides of another stage cannot share a group or a name"
        ) from None


def _name(shape: Shape, part: int | None) -> str:
    parts = [f"n{shape.nodes}"]
    if shape.pairing:
        safe = re.sub(r"[^A-Za-z0-9_.+-]", "-", shape.pairing)[:_MAX_LENGTH]
        # Two workloads whose names differ in what a file name cannot hold stay apart.
        parts.insert(0, safe if safe == shape.pairing else f"{safe}~{digest([shape.pairing])[:8]}")
    parts += [f"g{shape.gpus_per_node}"] if shape.gpus_per_node else []
    parts += [str(part)] if part is not None else []
    return ".".join(parts)


def _cores(cells: Iterable[Planned], system: System) -> int:
    """Cores per node that the largest cell uses, at most what a node has."""
    most = max(p.cell.ranks_per_node * p.cell.threads for p in cells)
    if system.exclusive and system.cores_per_node:
        return system.cores_per_node
    return min(most, system.cores_per_node or most)


def resources(block: Block, system: System, limits: Limits) -> dict[str, Any]:
    """Return Snakemake's resources for a block's job, as the Slurm executor reads them.

    All blocks of one rule have the same keys.
    """
    if system.scheduler == "none" or block.shape.local:
        return {}
    shape = block.shape
    asked: dict[str, Any] = {
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
        asked["mem_mb"] = memory
    partition = (shape.gpus_per_node and system.gpu_partition) or system.partition
    for key, value in (
        ("slurm_partition", partition),
        ("slurm_account", system.account),
        ("qos", system.qos),
        ("constraint", system.constraint),
    ):
        if value is not None:
            asked[key] = value
    if shape.gpus_per_node:
        kind = f"{system.gpu_type}:" if system.gpu_type else ""
        asked["gres"] = f"gpu:{kind}{shape.gpus_per_node}"
        # 0: the executor would otherwise ask for `tasks` tasks on each GPU.
        asked["tasks_per_gpu"] = 0
    extra = ["--ntasks-per-node=1"]
    if system.exclusive:
        extra.insert(0, "--exclusive")
    asked["slurm_extra"] = " ".join(extra)
    return asked
