"""The retrain stage: runtimes go on training base models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from transect.domain.axes.data import data_of
from transect.domain.axes.retrain import RELAY, RetrainCell, StepCell
from transect.domain.cell import Cell
from transect.domain.counts import GrowingCounts
from transect.domain.errors import BadInput, check_known
from transect.domain.pairs import PairRule
from transect.domain.registry import Registry
from transect.domain.study import Count, Counts, Names, Section, StageRepeatUntil, WhereItFits, typed
from transect.domain.takes import Takes
from transect.planning.context import Context
from transect.planning.environments import program_version
from transect.planning.stage import STAGES, Placement, Stage, points
from transect.runtimes import EVALUATION, PROVIDERS, RUNTIMES, cannot_train, check_providers, named_runtimes
from transect.runtimes.options import EQUAL, session_options
from transect.stages.export_training_step import BASE_FRAMEWORK
from transect.stages.train.stage import trained
from transect.training.optimisers import OPTIMISERS
from transect.training.workloads import WORKLOADS

# The rate that the base was trained with: every study has it.
OLD = "old"


class RateRule(Section):
    """A learning rate over the steps of a retraining, as multiples of the workload's own."""

    factor: float = Field(gt=0, description="times the workload's `learning_rate`")
    warmup: float = Field(
        default=0.0, ge=0, lt=1, description="share of the steps in which the rate grows to that, in equal parts"
    )
    end: float | None = Field(
        default=None,
        ge=0,
        description="times the workload's rate at the last step, after half a period of a cosine; null: it stays",
    )


class RetrainGrid(Section):
    """The cross product of its lists."""

    workloads: Names = Field(description="names from [plugins.md](plugins.md#workload)")
    runtimes: Annotated[Names, typed(named_runtimes)] = Field(
        description="names from [plugins.md](plugins.md#runtime) that train; several that take turns "
        "are joined by `>`, as in `rust>javascript`, and each does as many steps"
    )
    base_epochs: list[Annotated[int, Field(ge=0)] | None] = Field(
        default=[None],
        min_length=1,
        description="epochs of the base model's training: null: the workload's, by a train cell of "
        "torch, single, on one CPU rank, one thread; 0: none",
    )
    optimisers: Annotated[Names | None, typed(OPTIMISERS.named)] = Field(
        default=None, description="a file of `src/transect/training/optimisers` each; null: the workload's own"
    )
    rates: Names = Field(default=[OLD], description=f"`{OLD}`: the workload's own, or names from `retrain.rates`")
    steps: Counts = Field(default=[100], description="updates, of all that take turns together")
    batches: GrowingCounts | None = Field(default=None, description="rows of a micro-batch; null: the workload's batch")
    accumulate: Counts = Field(default=[1], description="micro-batches in a step")
    clip: list[Annotated[float, Field(gt=0)] | None] = Field(
        default=[None], min_length=1, description="largest Euclidean norm of all gradients together; null: none"
    )
    providers: Names = Field(default=["cpu"], description=", ".join(PROVIDERS))
    threads: GrowingCounts = Field(default=[1], description="intra-operator threads")
    repeats: Count | None = Field(default=None, description="null: as many as `retrain.repeats`")
    where_it_fits: WhereItFits = False


class RetrainSection(Section):
    """Retraining: base models that runtimes go on training with a portable training step."""

    repeats: Count = Field(
        default=1,
        description="runs of each cell, each with its own order of rows and, unless the base comes "
        "from a train cell, its own base model",
    )
    repeat_until: StageRepeatUntil = None
    checkpoint_every: int = Field(default=0, ge=0, description="steps between two checkpoints; 0: only at the end")
    rates: dict[str, RateRule] = Field(default={}, description="learning rates and schedules by name, see below")
    grids: list[RetrainGrid] = Field(default=[], description="see below")

    def problem(self, cell: RetrainCell) -> dict[str, Any]:
        """Return what is computed, whoever computes it: the same for all that differ in that alone.

        `name` names it among the problems of its step, and its folder there.
        """
        rule = RateRule(factor=1.0) if cell.rate == OLD else self.rates[cell.rate]
        parts = [f"r{cell.repeat}", f"b{cell.batch}", f"a{cell.accumulate}", f"s{cell.steps}", cell.rate]
        return {
            "name": ".".join(parts),
            "repeat": cell.repeat,
            "batch": cell.batch,
            "accumulate": cell.accumulate,
            "steps": cell.steps,
            "rate": rule.model_dump(),
        }


# Of a rate: it is part of ids, and names a folder.
_NAME = re.compile(r"[A-Za-z0-9_-]+")


def _of_problem(problem: dict[str, Any]) -> tuple[str, str]:
    return f"states/state-{problem['repeat']}.safetensors", f"problems/{problem['name']}"


@STAGES.register("retrain")
class Retrain(Stage[RetrainCell]):
    """Runs training steps through the runner contract, and holds them to PyTorch's float64 path."""

    payload = "transect.payloads.retrain:retrain"
    # The graphs, the rows, the base of its repeat, and its own problem. The data is the step's.
    takes = {
        "step": Takes("step", "data", "test", "facts.json", more=lambda spec: _of_problem(spec["problem"])),
        "data": Takes(),
    }
    measures = True
    # The last checkpoint, the records of the turns that are done, and what the program of the last one had left.
    keeps = ("checkpoint.safetensors", "turn-*.json", "turn-*/state-?.bin")
    key = "retrain"
    section = RetrainSection
    needs = ("export-training-step", "dataset", "train")
    placement = Placement(by_workload=True)
    # Each runtime on one path, beside the framework.
    pairs = (
        PairRule(
            metric="step_time",
            rules=("retraining.speed",),
            varies=("runtime",),
            base={"runtime": ("torch-eager",)},
            both={"is_relay": (False,)},
        ),
    )

    def check(self, section: RetrainSection, context: Context) -> None:
        """Names are known, bases are trained, and steps can be shared."""
        for name in section.rates:
            where = context.where(f"retrain.rates.{name}")
            with context.complaints.noted():
                if name == OLD:
                    raise BadInput(f"{where}: this rate is the workload's own: choose another name")
                if not _NAME.fullmatch(name):
                    raise BadInput(f"{where}: expected letters, digits, _ and -")
        for number, grid in enumerate(section.grids):
            with context.complaints.noted():
                _check_grid(section, grid, f"retrain.grids.{number}", context)

    def cells(self, section: RetrainSection, context: Context) -> Iterable[RetrainCell]:
        """The cross product of each grid, with its repeats."""
        for grid in section.grids:
            for workload in grid.workloads:
                parameters = context.parameters(workload)
                for point in points(
                    runtime=grid.runtimes,
                    base_epochs=grid.base_epochs,
                    optimiser=grid.optimisers or [parameters.optimiser],
                    rate=grid.rates,
                    steps=grid.steps,
                    batch=grid.batches or [parameters.batch],
                    accumulate=grid.accumulate,
                    clip=grid.clip,
                    provider=grid.providers,
                    threads=grid.threads,
                ):
                    for repeat in range(grid.repeats or section.repeats):
                        cell = RetrainCell(workload=workload, **point, repeat=repeat)
                        if not grid.where_it_fits or context.fits(cell, self.gpus(cell)):
                            yield cell

    def inputs(self, cell: RetrainCell, context: Context) -> dict[str, Cell]:
        """The step; and the data, of which the step's bases need as many starts as there are repeats."""
        step = StepCell(
            workload=cell.workload,
            optimiser=cell.optimiser,
            base_epochs=cell.base_epochs,
            accumulates=cell.accumulate > 1,
            clip=cell.clip,
        )
        return {"step": step, "data": data_of(cell.workload)}

    def plugins(self, cell: RetrainCell) -> list[tuple[Registry[Any], str]]:
        """The runtimes that take turns."""
        return [(RUNTIMES, name) for name in dict.fromkeys(cell.runtimes)]

    def supports(self, cell: RetrainCell) -> str | None:
        """Ask every runtime whether it trains."""
        return next(filter(None, (cannot_train(name, cell) for name in cell.runtimes)), None)

    def spec(self, cell: RetrainCell, context: Context) -> dict[str, Any]:
        """The problem, how often the state is kept, and the session's options."""
        section = context.section("retrain")
        used = {tool for name in cell.runtimes for tool in RUNTIMES.get(name).tools()}
        tools = {name: program_version(name) for name in sorted(used)}
        return ({"tools": tools} if tools else {}) | {
            "parameters": context.values(cell.workload),
            "problem": section.problem(cell),
            "checkpoint_every": section.checkpoint_every,
            "options": session_options(EQUAL, cell.threads, cell.provider, {}),
        }

    def sources(self, cell: RetrainCell) -> list[Path]:
        """The program that evaluates the final state."""
        return [RUNTIMES.source(EVALUATION), *RUNTIMES.get(EVALUATION).code_files()]

    def offers(self) -> Iterable[tuple[str, str, str]]:
        """Runtimes that train."""
        for name in RUNTIMES:
            if RUNTIMES.get(name).trains:
                yield f"training with {name}", "available", ""

    def environment(self, cell: RetrainCell) -> str:
        """The first runtime's."""
        return RUNTIMES.get(cell.runtimes[0]).environment

    def other_environments(self, cell: RetrainCell) -> Iterable[str]:
        """Those of the runtimes that follow, and of the one that evaluates."""
        return [RUNTIMES.get(name).environment for name in (*cell.runtimes, EVALUATION)]

    def programs(self, cell: RetrainCell) -> Mapping[str, str]:
        """Those that train in turn, and the one that evaluates."""
        return {name: RUNTIMES.get(name).environment for name in (*cell.runtimes, EVALUATION)}


def _check_grid(section: RetrainSection, grid: RetrainGrid, key: str, context: Context) -> None:
    """Raise BadInput for what nothing in the study has, or what would give no cell; note unknown names."""
    where, noted = context.where(key), context.unknown
    with context.naming():
        check_providers(grid.providers, f"{where}.providers")
    context.knows(WORKLOADS, grid.workloads, f"{key}.workloads")
    context.knows(OPTIMISERS, grid.optimisers or (), f"{key}.optimisers")
    for turns in grid.runtimes:
        if context.knows(RUNTIMES, turns.split(RELAY), f"{key}.runtimes"):
            with context.naming():
                _check_turns(turns.split(RELAY), grid, where)
    with context.complaints.noted():
        check_known("rate", grid.rates, [OLD, *section.rates], f"{where}.rates")
    for name in grid.workloads if context.unknown == noted else ():
        with context.complaints.noted():
            _check_bases(name, grid, where, context)


def _check_turns(names: list[str], grid: RetrainGrid, where: str) -> None:
    able = [runtime for runtime in RUNTIMES if RUNTIMES.get(runtime).trains]
    for name in names:
        if name not in able:
            raise BadInput(f"{where}.runtimes: '{name}' does not train; those that do: {', '.join(able)}")
    for steps in grid.steps:
        if steps % len(names):
            turns = RELAY.join(names)
            raise BadInput(f"{where}.steps: {steps} cannot be shared by the {len(names)} of '{turns}'")


def _check_bases(workload: str, grid: RetrainGrid, where: str, context: Context) -> None:
    epochs = context.parameters(workload).epochs
    for base in grid.base_epochs:
        if base is None:
            trained(workload, BASE_FRAMEWORK, context, f"{where}.base_epochs: null")
        elif base > epochs:
            raise BadInput(f"{where}.base_epochs: {base}, and '{workload}' is trained for {epochs} epochs")
