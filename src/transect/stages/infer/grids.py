"""What a grid of inference asks for: whose files its runtimes run, and whether all of it makes sense."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from transect.domain.counts import GrowingCounts
from transect.domain.errors import BadInput, unknown_name
from transect.domain.study import Count, Names, Section, StageRepeatUntil, WhereItFits, typed
from transect.onnx_models.exporters import EXPORTERS
from transect.onnx_models.models import MODELS
from transect.planning.context import Context
from transect.runtimes import PROVIDERS, RUNTIMES, check_onnx_precisions, check_providers, named_onnx_precision
from transect.runtimes.options import EQUAL, LANGUAGE_DEFAULTS
from transect.stages.generated_model import model_of
from transect.stages.train.stage import trained
from transect.training.workloads import WORKLOADS


class InferGrid(Section):
    """The cross product of its lists. A runtime that takes no ONNX model ignores `exporters`."""

    workloads: Names = Field(
        description="trained ones of `export.workloads`, and names from [plugins.md](plugins.md#model)"
    )
    runtimes: Annotated[Names, typed(RUNTIMES.named)] = Field(description="names from [plugins.md](plugins.md#runtime)")
    exporters: Names | None = Field(
        default=None,
        description="each must stand in `export.exporters` or `models.exporters`; null: all of them; "
        "what one cannot make is left out; not used by runtimes without ONNX",
    )
    providers: Names = Field(default=["cpu"], description=", ".join(PROVIDERS))
    batches: GrowingCounts = Field(default=[1], description="samples per call")
    threads: GrowingCounts = Field(default=[1], description="intra-operator threads")
    precisions: Annotated[Names, typed(named_onnx_precision)] = Field(
        default=["fp32"], description="`fp32`; others are made from it by the stage `convert`"
    )
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
    sessions: GrowingCounts = Field(default=[1], description="sessions at once that serve an offered load")
    repeats: Count | None = Field(default=None, description="runs of each cell of this grid; null: `infer.repeats`")
    where_it_fits: WhereItFits = False


class InferMeasure(Section):
    """How long cells of one workload measure, where it is not as long as the others."""

    warmup: int | None = Field(default=None, ge=0, description="as `infer.warmup`")
    min_runs: int | None = Field(default=None, ge=10, description="as `infer.min_runs`")
    max_seconds: float | None = Field(default=None, gt=0, description="as `infer.max_seconds`")


class InferSection(Section):
    """Inference cells, and how long each measures."""

    repeats: Count = Field(default=1, description="runs of each cell")
    repeat_until: StageRepeatUntil = None
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


def check_grid(section: InferSection, grid: InferGrid, key: str, context: Context) -> None:
    """Raise BadInput for what nothing in the study has, or what would give no cell; note unknown names.

    `key` is the grid's in the study.
    """
    where, noted = context.where(key), context.unknown
    context.knows(RUNTIMES, grid.runtimes, f"{key}.runtimes")
    with context.naming():
        check_providers(grid.providers, f"{where}.providers")
    with context.naming():
        check_onnx_precisions(grid.precisions, f"{where}.precisions")
    for name in grid.workloads:
        with context.naming():
            if name not in MODELS:
                WORKLOADS.get(name, f"{where}.workloads: no model of plugins.md, so a workload")
    if context.unknown != noted:
        return
    takes_onnx = any(RUNTIMES.get(name).uses_exporter for name in grid.runtimes)
    _check_sets(section, grid, where, context)
    if grid.sessions != [1] and not grid.loads:
        raise BadInput(f"{where}.sessions: {grid.sessions} serve an offered load: expected `loads` beside it")
    for name in grid.workloads:
        if name in MODELS:
            _check_made(name, grid, where, context, takes_onnx)
        else:
            _check_trained(name, grid, where, context, takes_onnx)
    _check_each(grid, where, context)


def _check_sets(section: InferSection, grid: InferGrid, where: str, context: Context) -> None:
    """Raise BadInput for an exporter or a set of options that the study does not have."""
    exporters = [*context.section("export").exporters, *context.section("models").exporters]
    for name in grid.exporters or ():
        if name not in exporters:
            raise BadInput(
                f"{where}.exporters: '{name}' is not among export.exporters "
                f"{context.section('export').exporters} and models.exporters "
                f"{context.section('models').exporters}"
            )
    sets = [EQUAL, LANGUAGE_DEFAULTS, *section.options]
    for name in grid.options:
        if name not in sets:
            raise unknown_name("set of session options", name, sets, f"{where}.options")
        threads = section.options.get(name, {}).get("intra_op_num_threads")
        if threads is not None and len(grid.threads) > 1:
            raise BadInput(
                f"{where}.threads: {grid.threads} would all run with {threads}, which infer.options."
                f"{name} sets: expected one"
            )


def _check_made(name: str, grid: InferGrid, where: str, context: Context, takes_onnx: bool) -> None:
    if not takes_onnx:
        raise BadInput(
            f"{where}.workloads: '{name}' is a model that only runtimes of ONNX can run, got {grid.runtimes}"
        )
    if not (grid.exporters or context.section("models").exporters):
        raise BadInput(f"{where}.workloads: '{name}' is made by exporters: expected `exporters` here or in `models`")
    if not any(True for _ in _made_by(name, grid, context)):
        raise BadInput(
            f"{where}.workloads: no exporter makes '{name}' of {grid.exporters or context.section('models').exporters}"
        )


def _check_trained(name: str, grid: InferGrid, where: str, context: Context, takes_onnx: bool) -> None:
    export = context.section("export")
    if takes_onnx and not export.exporters:
        raise BadInput(
            f"{where}.runtimes: {grid.runtimes} take ONNX models, and export.exporters names no "
            "exporter that would make them"
        )
    if takes_onnx and name not in export.workloads:
        raise BadInput(f"{where}.workloads: '{name}' is not among export.workloads {export.workloads}")
    trained(name, export.framework, context, f"{where}.workloads")


def _check_each(grid: InferGrid, where: str, context: Context) -> None:
    known = [name for name in grid.workloads if name in MODELS or name in WORKLOADS]
    pairs = [(r, e) for r in grid.runtimes for w in known for e in exporters_of(r, w, grid, context)]
    for name in grid.runtimes if known else ():
        if name not in {runtime for runtime, _ in pairs}:
            raise BadInput(
                f"{where}.runtimes: '{name}' runs none of {grid.workloads}: it takes "
                f"{'ONNX files' if RUNTIMES.get(name).uses_exporter else 'trained workloads alone'}"
            )
    takes_onnx = any(exporter for _, exporter in pairs)
    for name in grid.exporters or () if takes_onnx else ():
        if name not in {exporter for _, exporter in pairs}:
            raise BadInput(f"{where}.exporters: '{name}' makes a file of none of {grid.workloads}")


def _made_by(name: str, grid: InferGrid, context: Context) -> Iterable[str]:
    """Yield the exporters that can make a model; the stage that makes models reports what they cannot."""
    for exporter in grid.exporters or context.section("models").exporters:
        made = model_of(name, exporter)
        if not (MODELS.get(name).supports(made) or EXPORTERS.get(exporter).supports(made)):
            yield exporter


def exporters_of(runtime: str, workload: str, grid: InferGrid, context: Context) -> Iterable[str | None]:
    """Return whose files a runtime runs of a workload; None: it builds the model itself."""
    takes_onnx = RUNTIMES.get(runtime).uses_exporter
    if workload in MODELS:
        return _made_by(workload, grid, context) if takes_onnx else ()
    exported = context.section("export").exporters
    named = [name for name in grid.exporters or exported if name in exported]
    return named if takes_onnx else [None]
