"""The train stage: workloads by frameworks, strategies and numbers of ranks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from transect.domain.axes.data import data_of
from transect.domain.axes.train import MEMORY_PLAN, TrainCell
from transect.domain.cell import Cell
from transect.domain.counts import Count, GrowingCounts, GrowingCountsOrNull, HyperparameterChoices, StrategyChoices
from transect.domain.errors import BadInput
from transect.domain.mpi_libraries import chosen_mpi, other_environments
from transect.domain.paths import PACKAGE
from transect.domain.precisions import PRECISIONS, check_precisions, named_precision
from transect.domain.registry import Registry
from transect.domain.study import Containers, Names, Section, StageRepeatUntil, WhereItFits, typed
from transect.domain.system import System
from transect.domain.takes import DataArrays, Takes, own_repeat
from transect.launch.rendezvous import RENDEZVOUS
from transect.planning.context import Context
from transect.planning.environments import has_environment
from transect.planning.rule_sources import rule_sources
from transect.planning.stage import STAGES, Placement, Stage, points
from transect.stages.dataset import workload_plugins
from transect.stages.memory_plan.stage import memory_of
from transect.stages.reference import reference_of
from transect.stages.train.hyperparameters import changes_of, check_changes
from transect.stages.train.options import PLAN, PlannerSection, check_plan, planned_options
from transect.stages.train.pairs import TRAIN_PAIRS
from transect.stages.train.script_plan import check_environments, no_script, script_files, script_spec
from transect.training.frameworks import FRAMEWORKS
from transect.training.memory import MEMORIES
from transect.training.own_workload import cannot_import
from transect.training.restarts import RESTARTS
from transect.training.script_workload import ScriptWorkload, script_of
from transect.training.strategies import STRATEGIES, strategy_options
from transect.training.support import cannot_be_cut, reason_to_skip
from transect.training.workloads import WORKLOADS, Parameters


class TrainGrid(Section):
    """The cross product of its lists. The workload's batch is the global batch, or each replica's."""

    workloads: Names = Field(description="names from [plugins.md](plugins.md#workload)")
    frameworks: Annotated[Names, typed(FRAMEWORKS.named)] = Field(
        description="names from [plugins.md](plugins.md#framework)"
    )
    strategies: Annotated[Names, typed(STRATEGIES.named)] = Field(
        description="names from [plugins.md](plugins.md#strategy)"
    )
    ranks: GrowingCounts = Field(default=[1], description="ranks per node")
    nodes: GrowingCounts = Field(default=[1], description="nodes; more than one needs a launcher that can")
    threads: GrowingCounts = Field(default=[1], description="threads per rank")
    precisions: Annotated[Names, typed(named_precision)] = Field(
        default=["fp32"], description=f"{', '.join(PRECISIONS)}, as the framework supports"
    )
    networks: list[str | None] = Field(
        default=[None], min_length=1, description="names among the system's networks; null: its own choice"
    )
    containers: Containers = Field(default=[None])
    device: Literal["cpu", "cuda"] = Field(default="cpu", description="`cpu` or `cuda`")
    scaling: Literal["strong", "weak"] = Field(
        default="strong",
        description="strong: the workload's batch is the global batch; weak: it is each replica's, "
        "which is a rank unless ranks share a model",
    )
    batches: GrowingCountsOrNull = Field(
        default=[None],
        description="in place of the workload's batch (null), global or each replica's as `scaling` says",
    )
    learning_rate_rule: Literal["none", "linear"] = Field(
        default="none", description="linear: in proportion to the global batch, after the workload's warmup_steps"
    )
    reduce: list[Literal["mean", "sum"]] = Field(
        default=["mean"],
        min_length=1,
        description="what the gradients of ranks become; sum as in the published Go study",
    )
    inputs: list[Literal["stored", "files", "synthetic"]] = Field(
        default=["stored"],
        min_length=1,
        description="stored: the data stage's arrays; files: read anew in each step, images decoded, an own dataset asked; "
        "synthetic: random numbers that lie on the device",
    )
    options: StrategyChoices = Field(
        default=[{}],
        description="one cell for each, and for each value of a list: options of the strategies, see [plugins.md](plugins.md#options-of-strategies); or `plan`: "
        "auto, data, model or hybrid, which the planner turns into options of a pipeline ([parallelism.md](parallelism.md))",
    )
    hyperparameters: HyperparameterChoices = Field(
        default=[{}],
        description="one cell for each: an optimiser, a schedule and whatever of [workloads](#workloadsname) a step depends on, in place of the "
        "workload's own; a list is a cell for each of its values",
    )
    memories: Annotated[Names, typed(MEMORIES.named)] = Field(
        default=["plain"], description="what becomes of activations: names from [plugins.md](plugins.md#memory)"
    )
    memory_budgets: list[Count | None] = Field(
        default=[None],
        min_length=1,
        description="bytes that a rank's training may hold besides what it began with; null: no limit",
    )
    repeats: Count | None = Field(default=None, description="null: as many as `train.repeats`")
    where_it_fits: WhereItFits = False


class TrainSection(Section):
    """Training cells, and how often each is repeated, each repeat with its own seed."""

    repeats: Count = Field(
        default=3, description="runs of each cell, each with its own initial weights and batch order"
    )
    repeat_until: StageRepeatUntil = None
    planner: PlannerSection | None = Field(
        default=None, description="see below; only for grids whose options say `plan`"
    )
    grids: list[TrainGrid] = Field(default=[], description="see below")


def exported_by(cell: TrainCell) -> tuple[str, str] | None:
    """Return workload and framework of a cell whose weights others take, one on one CPU rank and thread; else None."""
    usual = (
        cell.strategy == "single"
        and cell.device == "cpu"
        and cell.threads == 1
        and cell.precision == "fp32"
        and cell.input == "stored"
        and cell.repeat == 0
        and cell.memory == "plain"
        and cell.memory_budget is None
        and cell.container is None
        and not cell.hyperparameters
    )
    return (cell.workload, cell.framework) if usual else None


def trained(workload: str, framework: str, context: Context, where: str = "") -> Cell:
    """Return the cell whose weights of a workload others take. Raises BadInput where the study has none."""
    cell = context.first("train", exported_by, (workload, framework))
    if cell is None:
        raise BadInput(
            f"{where or context.file}: takes the weights of '{workload}' from {framework} single on one rank, which no "
            "train grid has"
        )
    return cell


def _environment(cell: TrainCell, usual: str) -> str:
    """Return the environment of a cell's strategy, or else the usual one."""
    name = STRATEGIES.get(cell.strategy).environments.get(cell.framework, usual)
    # Where one lock file cannot serve both, `envs/NAME-cuda` is the one for GPUs.
    on_gpu = cell.device == "cuda" and has_environment(f"{name}-cuda")
    return f"{name}-cuda" if on_gpu else name


@STAGES.register("train")
class Train(Stage[TrainCell]):
    """Ranks train; their series become one record, checked against the reference."""

    payload = "transect.payloads.train:run_rank"
    runner = "transect.stages.train.run:TrainRunner"
    takes = {
        "data": DataArrays(own_repeat),
        "reference": Takes("trajectory.npz", "weights.npz", RESTARTS),
        "memory": Takes(MEMORY_PLAN),
    }
    measures = True
    key = "train"
    section = TrainSection
    needs = ("dataset", "memory-plan", "reference")
    placement = Placement(by_workload=True)
    spreads = True
    pairs = TRAIN_PAIRS

    def check(self, section: TrainSection, context: Context) -> None:
        """Workloads, frameworks and strategies are there."""
        for number, grid in enumerate(section.grids):
            with context.naming():
                check_precisions(grid.precisions, context.where(f"train.grids.{number}.precisions"))
            for registry, names, key in (
                (WORKLOADS, grid.workloads, "workloads"),
                (FRAMEWORKS, grid.frameworks, "frameworks"),
                (MEMORIES, grid.memories, "memories"),
            ):
                context.knows(registry, names, f"train.grids.{number}.{key}")
            check_environments(grid.workloads, context)
            check_changes(grid.workloads, grid.hyperparameters, f"train.grids.{number}.hyperparameters", context)
            if context.knows(STRATEGIES, grid.strategies, f"train.grids.{number}.strategies"):
                with context.complaints.noted():
                    self._check_options(grid, section, context.where(f"train.grids.{number}.options"))

    def _check_options(self, grid: TrainGrid, section: TrainSection, where: str) -> None:
        for name, options in product(grid.strategies, grid.options):
            strategy_options(name, check_plan(name, options, section.planner, where), where)
            if PLAN in options and grid.scaling == "weak":
                raise BadInput(
                    f"{where}.{PLAN}: with scaling weak the batch follows the plan, and the plan "
                    "the batch: expected strong"
                )

    def cells(self, section: TrainSection, context: Context) -> Iterable[TrainCell]:
        """The cross product of each grid, with its repeats."""
        for number, grid in enumerate(section.grids):
            where = context.where(f"train.grids.{number}.options")
            for point in points(
                workload=grid.workloads,
                framework=grid.frameworks,
                strategy=grid.strategies,
                nodes=grid.nodes,
                ranks_per_node=grid.ranks,
                threads=grid.threads,
                precision=grid.precisions,
                network=grid.networks,
                reduce=grid.reduce,
                input=grid.inputs,
                options=grid.options,
                hyperparameters=grid.hyperparameters,
                memory=grid.memories,
                memory_budget=grid.memory_budgets,
                batch=grid.batches,
                container=grid.containers,
            ):
                changes = changes_of(point["workload"], point.pop("hyperparameters"), context)
                options, parameters = point.pop("options"), context.parameters(point["workload"], changes)
                for repeat in range(grid.repeats or section.repeats):
                    cell = TrainCell(
                        **point | {"batch": point["batch"] or parameters.batch},
                        device=grid.device,
                        learning_rate_rule=grid.learning_rate_rule,
                        hyperparameters=changes,
                        repeat=repeat,
                    )
                    if grid.where_it_fits and not context.fits(cell, self.gpus(cell)):
                        continue
                    explicit = planned_options(cell, parameters, options, section.planner, where)
                    cell = cell.changed(options=strategy_options(cell.strategy, explicit, where))
                    if grid.scaling == "weak":
                        replicas = STRATEGIES.get(cell.strategy).layout(cell).replicas
                        cell = cell.changed(batch=cell.batch * replicas)
                    yield cell

    def inputs(self, cell: TrainCell, context: Context) -> dict[str, Cell]:
        """Data and reference; a workload whose reference would take days, and what cannot follow one, go without.

        A script reads its own data.
        """
        if isinstance(WORKLOADS.get(cell.workload), ScriptWorkload):
            return {}
        inputs: dict[str, Cell] = {"data": data_of(cell.workload)}
        unchecked = STRATEGIES.get(cell.strategy).unchecked(cell)
        if unchecked is None and context.parameters(cell.workload).reference_steps != 0:
            inputs["reference"] = reference_of(cell)
        skips = MEMORIES.get(cell.memory).supports(cell) or self.supports(cell)
        if cell.memory == "planned" and skips is None:
            inputs["memory"] = memory_of(cell)
        return inputs

    def plugins(self, cell: TrainCell) -> list[tuple[Registry[Any], str]]:
        """Framework, strategy and how its ranks meet, workload and dataset."""
        return [
            (FRAMEWORKS, cell.framework),
            (STRATEGIES, cell.strategy),
            (RENDEZVOUS, STRATEGIES.get(cell.strategy).rendezvous),
            (MEMORIES, cell.memory),
            *workload_plugins(cell.workload),
        ]

    def supports(self, cell: TrainCell) -> str | None:
        """The framework builds the model, where its files can be imported; files can be decoded, the batch divided, and a layer held."""
        if cell.memory == "planned" and cell.hyperparameters:
            return "a planned memory is made for the workload's own hyper-parameters"
        builds = FRAMEWORKS.get(cell.framework).builds(WORKLOADS.get(cell.workload).model)
        where = _environment(cell, FRAMEWORKS.get(cell.framework).environment)
        return no_script(cell) or builds or cannot_import(cell.workload, where) or cannot_be_cut(cell)

    def spec(self, cell: TrainCell, context: Context) -> dict[str, Any]:
        """The hyper-parameters; of a script those that are known, and how it is started."""
        if (script := script_of(cell)) is not None:
            return script_spec(cell, script, context)
        return {"parameters": context.values(cell.workload, cell.hyperparameters)}

    def refuses(self, cell: TrainCell, spec: dict[str, Any]) -> str | None:
        """What framework and strategy say of the hyper-parameters."""
        return (
            None if script_of(cell) is not None else reason_to_skip(cell, Parameters.model_validate(spec["parameters"]))
        )

    def sources(self, cell: TrainCell) -> list[Path]:
        """What starts its ranks, and the rules that parameters name; or a study's own script, and what runs and reads it."""
        own = script_files(cell)
        return [PACKAGE / "launch" / "processes.py", *(own or rule_sources())]

    def other_environments(self, cell: TrainCell) -> Iterable[str]:
        """That of its MPI library."""
        return other_environments(chosen_mpi(cell.options))

    def launchers(self, cell: TrainCell, system: System) -> tuple[str, ...]:
        """The system's, for MPI or without; another MPI library has its own."""
        if other_environments(chosen_mpi(cell.options)):
            return ("mpiexec",)
        mpi = RENDEZVOUS.get(STRATEGIES.get(cell.strategy).rendezvous).mpi
        return (system.mpi_launcher if mpi else system.launcher,)

    def offers(self) -> Iterable[tuple[str, str, str]]:
        """Frameworks; each brings its environment."""
        for name in FRAMEWORKS:
            framework = FRAMEWORKS.get(name)
            told = (
                ("missing", framework.not_installed)
                if framework.not_installed
                else ("available", f"environment '{framework.environment}'")
            )
            yield f"framework {name}", *told

    def environment(self, cell: TrainCell) -> str:
        """The framework's, or another one that the strategy or a GPU needs."""
        script = script_of(cell)
        usual = script.environment if script is not None else FRAMEWORKS.get(cell.framework).environment
        return _environment(cell, usual)
