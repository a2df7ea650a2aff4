"""The retrain stage: runtimes go on training base models."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

from transect.domain.axes.data import data_of
from transect.domain.axes.retrain import RELAY, RetrainCell, StepCell
from transect.domain.cell import GPU_PROVIDERS, Cell
from transect.domain.errors import BadInput, unknown_name
from transect.domain.registry import Registry
from transect.domain.until import Contest
from transect.planning.context import Context
from transect.planning.environments import program_version
from transect.planning.stage import STAGES, Placement, Stage
from transect.runtimes import EVALUATION, RUNTIMES, cannot_train, check_providers
from transect.runtimes.options import EQUAL, session_options
from transect.stages.retrain.plan_section import OLD, RetrainGrid, RetrainSection
from transect.stages.step.plan import BASE_FRAMEWORK
from transect.stages.train.plan import exported_by
from transect.training.optimisers import OPTIMISERS
from transect.training.workloads import WORKLOADS

# Of a rate: it is part of ids, and names a folder.
_NAME = re.compile(r"[A-Za-z0-9_-]+")


# Besides what makes a kind, such as the base.
_OF_A_POINT = ("provider", "threads", "steps", "batch", "accumulate")


@STAGES.register("retrain")
class Retrain(Stage):
    """Runs training steps through the runner contract, and holds them to PyTorch's float64 path."""

    key = "retrain"
    section = RetrainSection
    needs = ("step", "data", "train")
    placement = Placement(by_workload=True)
    # Which runtime is fast on one path; and where a path leads, whoever computes it.
    contest = Contest(
        metrics=("step_time",),
        apart=("optimiser", "rate", *_OF_A_POINT),
        beside=Contest(seeded=("accuracy",), apart=("runtime", *_OF_A_POINT)),
    )

    def check(self, section: RetrainSection, context: Context) -> None:
        """Names are known, bases are trained, and steps can be shared."""
        for name in section.rates:
            where = context.where(f"retrain.rates.{name}")
            if name == OLD:
                raise BadInput(f"{where}: this rate is the workload's own: choose another name")
            if not _NAME.fullmatch(name):
                raise BadInput(f"{where}: expected letters, digits, _ and -")
        for number, grid in enumerate(section.grids):
            with context.complaints.noted():
                _check_grid(section, grid, context.where(f"retrain.grids.{number}"), context)

    def cells(self, section: RetrainSection, context: Context) -> Iterable[Cell]:
        """The cross product of each grid, with its repeats."""
        for grid in section.grids:
            for workload in grid.workloads:
                own = context.parameters(workload)
                for runtime, base, optimiser, rate, steps, batch, accumulate, clip, provider, threads in product(
                    grid.runtimes,
                    grid.base_epochs,
                    grid.optimisers or [own.optimiser],
                    grid.rates,
                    grid.steps,
                    grid.batches or [own.batch],
                    grid.accumulate,
                    grid.clip,
                    grid.providers,
                    grid.threads,
                ):
                    for repeat in range(grid.repeats or section.repeats):
                        cell = RetrainCell(
                            workload=workload,
                            runtime=runtime,
                            base_epochs=base,
                            rate=rate,
                            optimiser=optimiser,
                            steps=steps,
                            batch=batch,
                            accumulate=accumulate,
                            clip=clip,
                            provider=provider,
                            threads=threads,
                            repeat=repeat,
                        )
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

    def gpus(self, cell: RetrainCell) -> int:
        """One for the provider."""
        return 1 if cell.provider in GPU_PROVIDERS else 0


def _check_grid(section: RetrainSection, grid: RetrainGrid, where: str, context: Context) -> None:
    """Raise BadInput for what nothing in the study has, or what would give no cell."""
    check_providers(grid.providers, f"{where}.providers")
    for name in grid.workloads:
        WORKLOADS.get(name, f"{where}.workloads")
        _check_bases(name, grid, where, context)
    for name in grid.optimisers or ():
        OPTIMISERS.get(name, f"{where}.optimisers")
    for name in grid.rates:
        if name not in (OLD, *section.rates):
            raise unknown_name("rate", name, [OLD, *section.rates], f"{where}.rates")
    for turns in grid.runtimes:
        names = turns.split(RELAY)
        for name in names:
            RUNTIMES.get(name, f"{where}.runtimes")
            if not RUNTIMES.get(name).trains:
                able = ", ".join(one for one in RUNTIMES if RUNTIMES.get(one).trains)
                raise BadInput(f"{where}.runtimes: '{name}' does not train; those that do: {able}")
        for steps in grid.steps:
            if steps % len(names):
                raise BadInput(f"{where}.steps: {steps} cannot be shared by the {len(names)} of '{turns}'")


def _check_bases(workload: str, grid: RetrainGrid, where: str, context: Context) -> None:
    epochs = context.parameters(workload).epochs
    for base in grid.base_epochs:
        if base is None:
            if context.first("train", exported_by, (workload, BASE_FRAMEWORK)) is None:
                raise BadInput(
                    f"{where}.base_epochs: null takes the weights of '{workload}' from "
                    f"{BASE_FRAMEWORK} single on one rank, which no train grid has"
                )
        elif base > epochs:
            raise BadInput(f"{where}.base_epochs: {base}, and '{workload}' is trained for {epochs} epochs")
