"""The section of a study that asks for retraining, and the problem that a cell of it poses."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from transect.domain.axes.retrain import RetrainCell
from transect.domain.study import Count, Counts, Names, Section
from transect.domain.until import Until
from transect.runtimes import PROVIDERS

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
    runtimes: Names = Field(
        description="names from [plugins.md](plugins.md#runtime) that train; several that take turns "
        "are joined by `>`, as in `rust>javascript`, and each does as many steps"
    )
    base_epochs: list[Annotated[int, Field(ge=0)] | None] = Field(
        default=[None],
        min_length=1,
        description="epochs of the base model's training: null: the workload's, by a train cell of "
        "torch, single, on one CPU rank, one thread; 0: none",
    )
    optimisers: Names | None = Field(
        default=None, description="a file of `src/transect/training/optimisers` each; null: the workload's own"
    )
    rates: Names = Field(default=[OLD], description=f"`{OLD}`: the workload's own, or names from `retrain.rates`")
    steps: Counts = Field(default=[100], description="updates, of all that take turns together")
    batches: Counts | None = Field(default=None, description="rows of a micro-batch; null: the workload's batch")
    accumulate: Counts = Field(default=[1], description="micro-batches in a step")
    clip: list[Annotated[float, Field(gt=0)] | None] = Field(
        default=[None], min_length=1, description="largest Euclidean norm of all gradients together; null: none"
    )
    providers: Names = Field(default=["cpu"], description=", ".join(PROVIDERS))
    threads: Counts = Field(default=[1], description="intra-operator threads")
    repeats: Count | None = Field(default=None, description="null: as many as `retrain.repeats`")
    where_it_fits: bool = Field(
        default=False,
        description="true: cells that need more nodes, cores or GPUs than the system has (where its "
        "file does not say: this machine) are not planned",
    )


class RetrainSection(Section):
    """Retraining: base models that runtimes go on training with a portable training step."""

    repeats: Count = Field(
        default=1,
        description="runs of each cell, each with its own order of rows and, unless the base comes "
        "from a train cell, its own base model",
    )
    until: Until | None = Field(
        default=None, description="measure on until it is known; null: as the study's `until` says"
    )
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
