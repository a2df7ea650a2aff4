"""The profile stage: what each layer takes, for the planner and for forecasts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from transect.domain.axes.train import ProfileCell, profiled_training
from transect.domain.counts import GrowingCounts
from transect.domain.precisions import PRECISIONS, check_precisions, named_precision
from transect.domain.registry import Registry
from transect.domain.study import Count, Names, Section, typed
from transect.domain.system import System
from transect.launch.rendezvous import RENDEZVOUS
from transect.planning.context import Context
from transect.planning.environments import has_environment
from transect.planning.sources import plugin_files
from transect.planning.stage import STAGES, Placement, Stage, points
from transect.training.frameworks import FRAMEWORKS, PartFramework
from transect.training.optimisers import OPTIMISERS
from transect.training.parts import no_parts
from transect.training.workloads import WORKLOADS, model_of


class ProfileGrid(Section):
    """The cross product of its lists."""

    workloads: Names = Field(description="names from [plugins.md](plugins.md#workload)")
    frameworks: Annotated[Names, typed(FRAMEWORKS.named)] = Field(
        description="names from [plugins.md](plugins.md#framework)"
    )
    batches: GrowingCounts = Field(
        description="samples of a micro-batch; from two sizes on, times of others lie on a line"
    )
    threads: GrowingCounts = Field(default=[1], description="threads per rank")
    ranks: GrowingCounts = Field(default=[1], description="ranks on the node that do the same at once, each for itself")
    precisions: Annotated[Names, typed(named_precision)] = Field(
        default=["fp32"], description=f"{', '.join(PRECISIONS)}, as the framework supports"
    )
    device: Literal["cpu", "cuda"] = Field(default="cpu", description="`cpu` or `cuda`")


class ProfileSection(Section):
    """Forward, backward and update of each layer alone, timed: what plans and forecasts are made of."""

    samples: Count = Field(default=15, description="timed steps of each cell")
    repeats: Count = Field(default=1, description="runs of each cell")
    grids: list[ProfileGrid] = Field(default=[], description="see below")


@STAGES.register("profile")
class Profile(Stage[ProfileCell]):
    """Times the layers of a model one by one."""

    payload = "transect.payloads.profile:run"
    runner = "transect.stages.profile.run:ProfileRunner"
    measures = True
    key = "profile"
    section = ProfileSection
    placement = Placement(by_workload=True)

    def check(self, section: ProfileSection, context: Context) -> None:
        """Workloads and frameworks are there."""
        for number, grid in enumerate(section.grids):
            with context.naming():
                check_precisions(grid.precisions, context.where(f"profile.grids.{number}.precisions"))
            for registry, names, key in (
                (WORKLOADS, grid.workloads, "workloads"),
                (FRAMEWORKS, grid.frameworks, "frameworks"),
            ):
                context.knows(registry, names, f"profile.grids.{number}.{key}")

    def cells(self, section: ProfileSection, context: Context) -> Iterable[ProfileCell]:
        """The cross product of each grid, with its repeats."""
        for grid in section.grids:
            for point in points(
                workload=grid.workloads,
                framework=grid.frameworks,
                batch=grid.batches,
                threads=grid.threads,
                ranks_per_node=grid.ranks,
                precision=grid.precisions,
            ):
                for repeat in range(section.repeats):
                    yield ProfileCell(**point, device=grid.device, repeat=repeat)

    def plugins(self, cell: ProfileCell) -> list[tuple[Registry[Any], str]]:
        """The workload; samples are drawn, not read. And how several ranks do not meet."""
        alone = cell.ranks == 1
        return [(WORKLOADS, cell.workload), *([] if alone else [(RENDEZVOUS, "none")])]

    def supports(self, cell: ProfileCell) -> str | None:
        """Lists of layers, and frameworks that train parts of them."""
        framework = FRAMEWORKS.get(cell.framework)
        if not isinstance(framework, PartFramework):
            return f"{cell.framework} trains no parts of a model"
        return no_parts(model_of(WORKLOADS.get(cell.workload))) or framework.supports(profiled_training(cell))

    def spec(self, cell: ProfileCell, context: Context) -> dict[str, Any]:
        """The hyper-parameters, and how often it is timed."""
        return {
            "parameters": context.step_values(cell.workload),
            "seed": context.study.seed,
            "samples": context.section(self.key).samples,
        }

    def sources(self, cell: ProfileCell) -> list[Path]:
        """The framework, whose `supports` is asked for a training, and the optimisers."""
        return [*plugin_files(FRAMEWORKS, cell.framework), *(OPTIMISERS.source(name) for name in OPTIMISERS)]

    def launchers(self, cell: ProfileCell, system: System) -> tuple[str, ...]:
        """A process, or several that need not meet."""
        return ("plain",) if cell.ranks == 1 else (system.launcher,)

    def environment(self, cell: ProfileCell) -> str:
        """The framework's, or the one for GPUs."""
        name = FRAMEWORKS.get(cell.framework).environment
        on_gpu = cell.device == "cuda" and has_environment(f"{name}-cuda")
        return f"{name}-cuda" if on_gpu else name
