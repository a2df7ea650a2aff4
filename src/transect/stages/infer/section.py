"""The sections of a study that ask for inference."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from transect.domain.study import Count, Counts, Names, Section
from transect.domain.until import Until
from transect.runtimes import PROVIDERS
from transect.runtimes.options import EQUAL


class InferGrid(Section):
    """The cross product of its lists. A runtime that takes no ONNX model ignores `exporters`."""

    workloads: Names = Field(
        description="trained ones of `export.workloads`, and names from [plugins.md](plugins.md#model)"
    )
    runtimes: Names = Field(description="names from [plugins.md](plugins.md#runtime)")
    exporters: Names | None = Field(
        default=None,
        description="each must stand in `export.exporters` or `models.exporters`; null: all of them; "
        "what one cannot make is left out; not used by runtimes without ONNX",
    )
    providers: Names = Field(default=["cpu"], description=", ".join(PROVIDERS))
    batches: Counts = Field(default=[1], description="samples per call")
    threads: Counts = Field(default=[1], description="intra-operator threads")
    precisions: Names = Field(default=["fp32"], description="`fp32`; others are made from it by the stage `convert`")
    options: Names = Field(
        default=[EQUAL],
        description="sets of session options: `equal`, `language-defaults` (none is set), or names "
        "from `infer.options`",
    )
    loads: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default=[],
        description="offered loads in requests per second, each request a batch, arriving at random; "
        "none: one call after another",
    )
    sessions: Counts = Field(default=[1], description="sessions at once that serve an offered load")
    repeats: Count | None = Field(default=None, description="runs of each cell of this grid; null: `infer.repeats`")
    where_it_fits: bool = Field(
        default=False,
        description="true: cells that need more nodes, cores or GPUs than the system has (where its "
        "file does not say: this machine) are not planned",
    )


class InferMeasure(Section):
    """How long cells of one workload measure, where it is not as long as the others."""

    warmup: int | None = Field(default=None, ge=0, description="as `infer.warmup`")
    min_runs: int | None = Field(default=None, ge=10, description="as `infer.min_runs`")
    max_seconds: float | None = Field(default=None, gt=0, description="as `infer.max_seconds`")


class InferSection(Section):
    """Inference cells, and how long each measures."""

    repeats: Count = Field(default=1, description="runs of each cell")
    until: Until | None = Field(
        default=None, description="measure on until it is known; null: as the study's `until` says"
    )
    warmup: int = Field(
        default=20,
        ge=0,
        description="calls before the measurement, thrown away; of batch B `warmup / B`, but not fewer than 20 for it",
    )
    min_runs: int = Field(default=100, ge=10, description="least number of timed calls")
    max_seconds: float = Field(default=1.0, gt=0, description="cap on the timed part, once `min_runs` are done")
    load_seconds: float = Field(default=2.0, gt=0, description="time in which the requests of an offered load arrive")
    measure: dict[str, InferMeasure] = Field(
        default={}, description="by workload: `warmup`, `min_runs` and `max_seconds` of its own"
    )
    options: dict[str, dict[str, Any]] = Field(
        default={},
        description="sets of session options by name: what differs from `equal`; null: not set, so "
        "that the language's default holds ([the keys](runner-contract.md#session-options))",
    )
    grids: list[InferGrid] = Field(default=[], description="see below")
