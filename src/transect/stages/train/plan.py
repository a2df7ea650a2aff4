"""The train stage: workloads by frameworks, strategies and numbers of ranks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from transect.domain.cell import Cell
from transect.domain.precisions import PRECISIONS, check_precisions
from transect.domain.registry import Registry
from transect.domain.study import Count, Counts, Names, Section
from transect.domain.system import System
from transect.launch.rendezvous import RENDEZVOUS
from transect.planning.code_hash import PACKAGE
from transect.planning.context import Context
from transect.planning.environments import has_environment
from transect.planning.stage import STAGES, Placement, Stage
from transect.stages.data.cell import data_of
from transect.stages.data.plan import workload_plugins
from transect.stages.reference.plan import reference_of
from transect.stages.train.cell import TrainCell
from transect.training.datasets import DATASETS
from transect.training.frameworks import FRAMEWORKS
from transect.training.optimisers import OPTIMISERS
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS

__all__ = ["Train", "TrainGrid", "TrainSection", "exported_by"]


class TrainGrid(Section):
    """The cross product of its lists. The workload's batch is the global batch, or each rank's."""

    workloads: Names = Field(description="names from [plugins.md](plugins.md#workload)")
    frameworks: Names = Field(description="names from [plugins.md](plugins.md#framework)")
    strategies: Names = Field(description="names from [plugins.md](plugins.md#strategy)")
    ranks: Counts = Field(default=[1], description="ranks per node")
    nodes: Counts = Field(default=[1], description="nodes; more than one needs a launcher that can")
    threads: Counts = Field(default=[1], description="threads per rank")
    precisions: Names = Field(
        default=["fp32"], description=f"{', '.join(PRECISIONS)}, as the framework supports"
    )
    networks: list[str | None] = Field(
        default=[None],
        min_length=1,
        description="names among the system's networks; null: its own choice",
    )
    device: str = Field(default="cpu", description="`cpu` or `cuda`")
    scaling: Literal["strong", "weak"] = Field(
        default="strong",
        description="strong: the workload's batch is the global batch; weak: it is each rank's",
    )
    learning_rate_rule: Literal["none", "linear"] = Field(
        default="none",
        description="linear: in proportion to the global batch, after the workload's warmup_steps",
    )
    reduce: list[Literal["mean", "sum"]] = Field(
        default=["mean"],
        min_length=1,
        description="what the gradients of ranks become; sum as in the published Go study",
    )
    inputs: list[Literal["stored", "files", "synthetic"]] = Field(
        default=["stored"],
        min_length=1,
        description="stored: the data stage's arrays; files: decoded in each step; "
        "synthetic: random numbers that lie on the device",
    )
    repeats: Count | None = Field(default=None, description="null: as many as `train.repeats`")
    where_it_fits: bool = Field(
        default=False,
        description="true: cells that need more nodes, cores or GPUs than the system has (where its "
        "file does not say: this machine) are not planned",
    )


class TrainSection(Section):
    """Training cells, and how often each is repeated, each repeat with its own seed."""

    repeats: Count = Field(
        default=3,
        description="runs of each cell, each with its own initial weights and batch order",
    )
    grids: list[TrainGrid] = Field(default=[], description="see below")


def exported_by(cell: TrainCell) -> tuple[str, str] | None:
    """Return workload and framework of a cell whose weights are exported, or None.

    It is one on one CPU rank and thread.
    """
    usual = (
        cell.strategy == "single" and cell.device == "cpu" and cell.threads == 1
        and cell.precision == "fp32" and cell.input == "stored" and cell.repeat == 0
    )  # fmt: skip
    return (cell.workload, cell.framework) if usual else None


@STAGES.register("train")
class Train(Stage):
    """Ranks train; their series become one record, checked against the reference."""

    key = "train"
    section = TrainSection
    needs = ("data", "reference")
    placement = Placement(by_workload=True)
    spreads = True

    def check(self, section: TrainSection, context: Context) -> None:
        """Workloads, frameworks and strategies are there."""
        for number, grid in enumerate(section.grids):
            check_precisions(grid.precisions, context.where(f"train.grids.{number}.precisions"))
            for registry, names, key in (
                (WORKLOADS, grid.workloads, "workloads"),
                (FRAMEWORKS, grid.frameworks, "frameworks"),
                (STRATEGIES, grid.strategies, "strategies"),
            ):
                for name in names:
                    registry.get(name, context.where(f"train.grids.{number}.{key}"))

    def cells(self, section: TrainSection, context: Context) -> Iterable[Cell]:
        """The cross product of each grid, with its repeats."""
        for grid in section.grids:
            for workload, framework, strategy, nodes, ranks, threads, precision, network, reduce, source in product(
                grid.workloads, grid.frameworks, grid.strategies, grid.nodes, grid.ranks,
                grid.threads, grid.precisions, grid.networks, grid.reduce, grid.inputs,
            ):  # fmt: skip
                for repeat in range(grid.repeats or section.repeats):
                    cell = TrainCell(
                        workload=workload, framework=framework, strategy=strategy, nodes=nodes,
                        ranks_per_node=ranks, threads=threads, precision=precision,
                        device=grid.device, network=network, reduce=reduce, input=source,
                        learning_rate_rule=grid.learning_rate_rule,
                        batch=context.parameters(workload).batch, repeat=repeat,
                    )  # fmt: skip
                    if grid.scaling == "weak":
                        replicas = STRATEGIES.get(strategy).layout(cell).replicas
                        cell = cell.changed(batch=cell.batch * replicas)
                    if not grid.where_it_fits or context.fits(cell, self.gpus(cell)):
                        yield cell

    def inputs(self, cell: TrainCell, context: Context) -> dict[str, Cell]:
        """Data and reference; a workload whose reference would take days goes without."""
        inputs: dict[str, Cell] = {"data": data_of(cell.workload)}
        if context.parameters(cell.workload).reference_steps != 0:
            inputs["reference"] = reference_of(cell)
        return inputs

    def plugins(self, cell: TrainCell) -> list[tuple[Registry[Any], str]]:
        """Framework, strategy and how its ranks meet, workload and dataset."""
        return [
            (FRAMEWORKS, cell.framework),
            (STRATEGIES, cell.strategy),
            (RENDEZVOUS, STRATEGIES.get(cell.strategy).rendezvous),
            *workload_plugins(cell.workload),
        ]

    def supports(self, cell: TrainCell) -> str | None:
        """Files can be decoded, and the batch divided."""
        if cell.input == "files":
            dataset = WORKLOADS.get(cell.workload).dataset
            if not getattr(DATASETS.get(dataset), "files", False):
                return f"the samples of {dataset} are not files that could be decoded in each step"
        replicas = STRATEGIES.get(cell.strategy).layout(cell).replicas
        if cell.batch % replicas:
            return f"a global batch of {cell.batch} cannot be cut in {replicas} equal parts"
        return None

    def spec(self, cell: TrainCell, context: Context) -> dict[str, Any]:
        """The hyper-parameters."""
        return {"parameters": context.values(cell.workload)}

    def sources(self, cell: TrainCell) -> list[Path]:
        """The optimisers, and what starts its ranks."""
        return [
            PACKAGE / "launch" / "processes.py",
            *(OPTIMISERS.source(name) for name in OPTIMISERS),
        ]

    def launchers(self, cell: TrainCell, system: System) -> tuple[str, ...]:
        """The system's, for MPI or without."""
        mpi = RENDEZVOUS.get(STRATEGIES.get(cell.strategy).rendezvous).mpi
        return (system.mpi_launcher if mpi else system.launcher,)

    def offers(self) -> Iterable[tuple[str, str, str]]:
        """Frameworks; each brings its environment."""
        for name in FRAMEWORKS:
            environment = FRAMEWORKS.get(name).environment
            yield f"framework {name}", "available", f"environment '{environment}'"

    def environment(self, cell: TrainCell) -> str:
        """The framework's, or another one that the strategy or a GPU needs."""
        own = FRAMEWORKS.get(cell.framework).environment
        name = STRATEGIES.get(cell.strategy).environments.get(cell.framework, own)
        # Where one lock file cannot serve both, `envs/NAME-cuda` is the one for GPUs.
        on_gpu = cell.device == "cuda" and has_environment(f"{name}-cuda")
        return f"{name}-cuda" if on_gpu else name
