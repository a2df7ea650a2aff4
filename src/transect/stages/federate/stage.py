"""The federate stage: clients that keep their rows, and a server that makes one model of their updates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from transect.domain.axes.data import data_of
from transect.domain.axes.federate import FederateCell
from transect.domain.axes.retrain import RELAY, RetrainCell, StepCell
from transect.domain.cell import Cell
from transect.domain.counts import Count, GrowingCounts, HyperparameterChoices
from transect.domain.errors import BadInput
from transect.domain.options import Options, chosen_options
from transect.domain.registry import Registry
from transect.domain.study import Counts, Names, Section, StageRepeatUntil, WhereItFits, typed
from transect.domain.system import System
from transect.domain.takes import DataArrays, Takes, own_repeat
from transect.federated.aggregations import AGGREGATIONS
from transect.federated.engines import ENGINES, reason_to_skip
from transect.federated.methods import METHODS
from transect.federated.partitions import EXPECTED, parsed
from transect.federated.plan_file import FEDERATION, PATH
from transect.planning.context import Context
from transect.planning.environments import program_version
from transect.planning.rule_sources import rule_sources
from transect.planning.stage import STAGES, Placement, Stage, points
from transect.runtimes import RUNTIMES, cannot_train, named_runtimes
from transect.stages.dataset import workload_plugins
from transect.stages.federate.pairs import FEDERATE_PAIRS
from transect.stages.federate_reference import federate_reference_of
from transect.stages.train.hyperparameters import changes_of, check_changes
from transect.training.frameworks import FRAMEWORKS
from transect.training.script_workload import ScriptWorkload
from transect.training.workloads import WORKLOADS, Parameters

# Of which engine frameworks and runtimes are axes.
_LOOP, _ONNX = "loop", "onnx"
_OPTION = str | int | float
# What an exported step takes from the cell, as an input or as an axis of its own.
_OF_A_STEP = ("clip_norm", "learning_rate", "optimiser")


class FederateGrid(Section):
    """The cross product of its lists."""

    workloads: Names = Field(description="names from [plugins.md](plugins.md#workload)")
    engines: Annotated[Names, typed(ENGINES.named)] = Field(description="names from [plugins.md](plugins.md#engine)")
    frameworks: Annotated[Names, typed(FRAMEWORKS.named)] = Field(
        default=["numpy"],
        description="of engine `loop`: who computes a client's steps, from [plugins.md](plugins.md#framework)",
    )
    runtimes: Annotated[Names, typed(named_runtimes)] = Field(
        default=["python"],
        description="of engine `onnx`: whose programs compute a client's steps, names from [plugins.md](plugins.md#runtime) that train; "
        "`python>rust>go` gives each client one of several by turns",
    )
    aggregations: list[str | dict[str, _OPTION]] = Field(
        default=["fedavg"],
        min_length=1,
        description="names from [plugins.md](plugins.md#aggregation), or mappings of `name` and options",
    )
    methods: list[str | dict[str, _OPTION]] = Field(
        default=["plain"],
        min_length=1,
        description="what clients do besides plain local steps: names from [plugins.md](plugins.md#method), or mappings "
        "of `name` and options",
    )
    partitions: Names = Field(default=["iid"], description=f"who has which rows: {EXPECTED}")
    clients: Counts = Field(description="how many there are")
    cohorts: Counts = Field(description="how many train at once: those of a round, or as many at any time")
    buffers: list[Count | None] = Field(
        default=[None],
        min_length=1,
        description="null: rounds, in which the server waits for the whole cohort; else it makes a model of every so "
        "many updates, while others go on",
    )
    slowness: list[Annotated[float, Field(ge=0, le=5)]] = Field(
        default=[0.0],
        min_length=1,
        description="how far clients' simulated speeds lie apart: sigma of the lognormal durations of their turns; 0: all are alike",
    )
    rounds: Counts = Field(description="updates of the server")
    local_steps: Counts = Field(default=[5], description="steps of a client's turn")
    batches: Counts = Field(default=[10], description="rows of a client's step")
    ranks: GrowingCounts = Field(default=[1], description="ranks per node, which share the turns")
    nodes: GrowingCounts = Field(default=[1], description="nodes")
    threads: GrowingCounts = Field(default=[1], description="threads per rank")
    hyperparameters: HyperparameterChoices = Field(
        default=[{}], description="one cell for each, as in training grids: of a client's steps"
    )
    repeats: Count | None = Field(default=None, description="null: as many as `federate.repeats`")
    where_it_fits: WhereItFits = False


class FederateSection(Section):
    """Federated learning, simulated: clients train on their own rows, and a server makes one model of their updates."""

    repeats: Count = Field(
        default=3, description="runs of each cell, each with its own partition, cohorts, initial weights and orders"
    )
    repeat_until: StageRepeatUntil = None
    grids: list[FederateGrid] = Field(default=[], description="see below")


def _chosen(registry: Registry[Any], given: str | dict[str, _OPTION], where: str) -> tuple[str, Options]:
    """Return name and options. Raises BadInput for what there is not."""
    chosen = {"name": given} if isinstance(given, str) else dict(given)
    name = chosen.pop("name", None)
    if not isinstance(name, str):
        raise BadInput(f"{where}: expected a name, or a mapping of `name` and options, got {given!r}")
    name = registry.named(name)
    return name, chosen_options(f"{registry.kind} {name}", registry.get(name, where).options, chosen, where)


def _partition(given: str) -> str:
    """Return it as ids have it: `dirichlet-0.30` is `dirichlet-0.3`."""
    name, number = parsed(given)
    return f"{name}-{number:g}" if number else name


@STAGES.register("federate")
class Federate(Stage[FederateCell]):
    """Simulates federated learning; each update of the server is held to the float64 reference."""

    payload = "transect.payloads.federate:federate"
    runner = "transect.stages.federate.run:FederateRunner"
    takes = {
        "data": DataArrays(own_repeat),
        "reference": Takes(FEDERATION, PATH, details=("rules", "not_checkable_from")),
        "step": Takes("step"),
    }
    measures = True
    key = "federate"
    section = FederateSection
    needs = ("dataset", "federate-reference", "export-training-step")
    placement = Placement(by_workload=True)
    spreads = True
    pairs = FEDERATE_PAIRS

    def check(self, section: FederateSection, context: Context) -> None:
        """Names, partitions and options are there, and cohorts fit."""
        for number, grid in enumerate(section.grids):
            key = f"federate.grids.{number}"
            where = context.where(key)
            for registry, names, name in (
                (WORKLOADS, grid.workloads, "workloads"),
                (ENGINES, grid.engines, "engines"),
                (FRAMEWORKS, grid.frameworks, "frameworks"),
                (RUNTIMES, [name for given in grid.runtimes for name in given.split(RELAY)], "runtimes"),
            ):
                context.knows(registry, names, f"{key}.{name}")
            check_changes(grid.workloads, grid.hyperparameters, f"{key}.hyperparameters", context)
            for given in grid.aggregations:
                with context.naming():
                    _chosen(AGGREGATIONS, given, f"{where}.aggregations")
            for given in grid.methods:
                with context.naming():
                    _chosen(METHODS, given, f"{where}.methods")
            for given in grid.partitions:
                with context.complaints.noted():
                    parsed(given, f"{where}.partitions: ")
            with context.complaints.noted():
                _check_counts(grid, where)

    def cells(self, section: FederateSection, context: Context) -> Iterable[FederateCell]:
        """The cross product of each grid, with its repeats; only engine `loop` has frameworks."""
        for number, grid in enumerate(section.grids):
            where = context.where(f"federate.grids.{number}")
            for point in points(
                workload=grid.workloads,
                engine=[engine for name in grid.engines for engine in _engines(name, grid)],
                aggregation=[_chosen(AGGREGATIONS, given, f"{where}.aggregations") for given in grid.aggregations],
                method=[_chosen(METHODS, given, f"{where}.methods") for given in grid.methods],
                partition=[_partition(given) for given in grid.partitions],
                clients=grid.clients,
                cohort=grid.cohorts,
                buffer=grid.buffers,
                slowness=grid.slowness,
                rounds=grid.rounds,
                local_steps=grid.local_steps,
                batch=grid.batches,
                nodes=grid.nodes,
                ranks_per_node=grid.ranks,
                threads=grid.threads,
                hyperparameters=grid.hyperparameters,
            ):
                point |= point.pop("engine")
                point["aggregation"], point["options"] = point["aggregation"]
                point["method"], point["method_options"] = point["method"]
                point["hyperparameters"] = changes_of(point["workload"], point["hyperparameters"], context)
                for repeat in range(grid.repeats or section.repeats):
                    cell = FederateCell(**point, repeat=repeat)
                    if not grid.where_it_fits or context.fits(cell, self.gpus(cell)):
                        yield cell

    def inputs(self, cell: FederateCell, context: Context) -> dict[str, Cell]:
        """Data and reference, and the step that programs run."""
        inputs: dict[str, Cell] = {"data": data_of(cell.workload), "reference": federate_reference_of(cell)}
        if cell.runtime is not None:
            own = context.parameters(cell.workload, cell.hyperparameters)
            inputs["step"] = StepCell(
                workload=cell.workload,
                optimiser=own.optimiser,
                base_epochs=0,
                clip=own.clip_norm,
                proximal=METHODS.get(cell.method).pulls,
            )
        return inputs

    def plugins(self, cell: FederateCell) -> list[tuple[Registry[Any], str]]:
        """Engine, aggregation, method, runtimes, workload and dataset."""
        runtimes = [(RUNTIMES, name) for name in dict.fromkeys(cell.runtimes)]
        rules: list[tuple[Registry[Any], str]] = [(AGGREGATIONS, cell.aggregation), (METHODS, cell.method)]
        return [(ENGINES, cell.engine), *rules, *runtimes, *workload_plugins(cell.workload)]

    def supports(self, cell: FederateCell) -> str | None:
        """Ranks that would start programs, and runtimes that do not train."""
        if cell.runtime is not None and cell.ranks > 1:
            return "programs of the portable step are started by one process: `threads` of them run at once"
        fixed = [name for name, _ in cell.hyperparameters if name not in _OF_A_STEP]
        if cell.runtime is not None and fixed:
            return f"an exported step has the workload's own {fixed[0]}: say it under `workloads`"
        return next(filter(None, (cannot_train(name, _turn(cell)) for name in cell.runtimes)), None)

    def spec(self, cell: FederateCell, context: Context) -> dict[str, Any]:
        """Hyper-parameters, the study's seed, and what builds the programs."""
        used = {tool for name in cell.runtimes for tool in RUNTIMES.get(name).tools()}
        tools = {name: program_version(name) for name in sorted(used)}
        return ({"tools": tools} if tools else {}) | {
            "parameters": context.values(cell.workload, cell.hyperparameters),
            "seed": context.study.seed,
        }

    def refuses(self, cell: FederateCell, spec: dict[str, Any]) -> str | None:
        """What no client's turn has, and what the engine says of model and hyper-parameters."""
        workload = WORKLOADS.get(cell.workload)
        if isinstance(workload, ScriptWorkload):
            return f"{cell.workload} is a script, of whose training no more than its score is known"
        parameters = Parameters.model_validate(spec["parameters"])
        return reason_to_skip(cell, workload.model, parameters)

    def sources(self, cell: FederateCell) -> list[Path]:
        """The framework that scores and the cell's own, which is asked about trainings, and the rules that parameters name."""
        own = (
            [FRAMEWORKS.source(cell.framework), *FRAMEWORKS.get(cell.framework).code_files()] if cell.framework else []
        )
        return [FRAMEWORKS.source("numpy"), *own, *rule_sources()]

    def other_environments(self, cell: FederateCell) -> Iterable[str]:
        """Those of the runtimes."""
        return [RUNTIMES.get(name).environment for name in cell.runtimes]

    def programs(self, cell: FederateCell) -> Mapping[str, str]:
        """The runtimes'."""
        return {name: RUNTIMES.get(name).environment for name in cell.runtimes}

    def launchers(self, cell: FederateCell, system: System) -> tuple[str, ...]:
        """Several ranks are MPI's."""
        return ("plain",) if cell.ranks == 1 else (system.mpi_launcher,)

    def environment(self, cell: FederateCell) -> str:
        """The framework's or the first runtime's, or where numpy is."""
        if cell.runtime is not None:
            return RUNTIMES.get(cell.runtimes[0]).environment
        if cell.framework is not None:
            return FRAMEWORKS.get(cell.framework).environment
        return "base"


def _engines(name: str, grid: FederateGrid) -> list[dict[str, Any]]:
    """Return the axes of an engine's cells: one for each framework, or runtime, where it has these."""
    if name == _LOOP:
        return [{"engine": name, "framework": framework} for framework in grid.frameworks]
    if name == _ONNX:
        return [{"engine": name, "runtime": runtime} for runtime in grid.runtimes]
    return [{"engine": name}]


def _turn(cell: FederateCell) -> RetrainCell:
    """Return the retraining that a client's turn is to its runtime: what it says of the optimiser is for `refuses`."""
    return RetrainCell(
        workload=cell.workload,
        runtime=cell.runtime or "",
        provider="cpu",
        optimiser="sgd",
        base_epochs=0,
        steps=cell.local_steps,
        batch=cell.batch,
    )


def _check_counts(grid: FederateGrid, where: str) -> None:
    """Raise BadInput for cohorts that are larger than there are clients."""
    if max(grid.cohorts) > min(grid.clients):
        raise BadInput(
            f"{where}.cohorts: {max(grid.cohorts)} at once of {min(grid.clients)} clients: expected no more than there are"
        )
