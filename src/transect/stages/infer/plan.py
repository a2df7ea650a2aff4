"""The infer stage: runtimes execute exported models."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Annotated, Any

from pydantic import Field

from transect.domain.cell import GPU_PROVIDERS, Cell
from transect.domain.errors import BadInput, unknown_name
from transect.domain.registry import Registry
from transect.domain.study import Count, Counts, Names, Section
from transect.onnx_models.exporters import EXPORTERS
from transect.onnx_models.models import MODELS
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage
from transect.runtimes import ONNX_PRECISIONS, RUNTIMES
from transect.runtimes.options import EQUAL, LANGUAGE_DEFAULTS, check_options, session_options
from transect.stages.convert.cell import ConvertCell
from transect.stages.convert.plan import exported_model
from transect.stages.data.plan import workload_plugins
from transect.stages.export.cell import ExportCell
from transect.stages.infer.cell import InferCell
from transect.stages.model.plan import model_of
from transect.stages.train.plan import exported_by
from transect.training.workloads import WORKLOADS

__all__ = ["Infer", "InferGrid", "InferSection"]


class InferGrid(Section):
    """The cross product of its lists. A runtime that takes no ONNX model ignores `exporters`."""

    workloads: Names = Field(
        description="trained ones of `export.workloads`, and names from [plugins.md](plugins.md#model)"
    )
    runtimes: Names = Field(description="names from [plugins.md](plugins.md#runtime)")
    exporters: Names | None = Field(
        default=None,
        description="each must stand in `export.exporters` or `models.exporters`; null: all of them; "
        "not used by runtimes without ONNX",
    )
    providers: Names = Field(default=["cpu"], description="`cpu` or `cuda`")
    batches: Counts = Field(default=[1], description="samples per call")
    threads: Counts = Field(default=[1], description="intra-operator threads")
    precisions: Names = Field(
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
    sessions: Counts = Field(default=[1], description="sessions at once that serve an offered load")
    repeats: Count | None = Field(
        default=None, description="runs of each cell of this grid; null: `infer.repeats`"
    )
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
    warmup: int = Field(default=20, ge=0, description="calls before the measurement, thrown away")
    min_runs: int = Field(default=100, ge=10, description="least number of timed calls")
    max_seconds: float = Field(
        default=1.0, gt=0, description="cap on the timed part, once `min_runs` are done"
    )
    load_seconds: float = Field(
        default=2.0, gt=0, description="time in which the requests of an offered load arrive"
    )
    measure: dict[str, InferMeasure] = Field(
        default={}, description="by workload: `warmup`, `min_runs` and `max_seconds` of its own"
    )
    options: dict[str, dict[str, Any]] = Field(
        default={},
        description="sets of session options by name: what differs from `equal`; null: not set, so "
        "that the language's default holds ([the keys](runner-contract.md#session-options))",
    )
    grids: list[InferGrid] = Field(default=[], description="see below")


def _workload(cell: ExportCell) -> str:
    return cell.workload


@STAGES.register("infer")
class Infer(Stage):
    """Executes models through the runner contract."""

    key = "infer"
    section = InferSection
    needs = ("export", "train", "model", "convert")
    placement = Placement(by_workload=True)

    def check(self, section: InferSection, context: Context) -> None:
        """Names are known, and every model is made, exported or at least trained."""
        check_options(section.options, context.where("infer.options"))
        measured = {name for grid in section.grids for name in grid.workloads}
        for name in section.measure:
            if name not in measured:
                raise unknown_name("workload", name, measured, context.where("infer.measure"))
        for number, grid in enumerate(section.grids):
            where = context.where(f"infer.grids.{number}")
            takes_onnx = [
                RUNTIMES.get(name, f"{where}.runtimes").uses_exporter for name in grid.runtimes
            ]
            _check_names(section, grid, where, context)
            if grid.sessions != [1] and not grid.loads:
                raise BadInput(
                    f"{where}.sessions: {grid.sessions} serve an offered load: expected `loads` "
                    "beside it"
                )
            for name in grid.workloads:
                if name in MODELS:
                    _check_made(name, grid, where, context, any(takes_onnx))
                else:
                    _check_trained(name, grid, where, context, any(takes_onnx))

    def cells(self, section: InferSection, context: Context) -> Iterable[Cell]:
        """The cross product of each grid, with its repeats."""
        for grid in section.grids:
            for runtime, workload, provider, batch, threads, precision, options, load, sessions in product(
                grid.runtimes, grid.workloads, grid.providers, grid.batches, grid.threads,
                grid.precisions, grid.options, grid.loads or [None], grid.sessions,
            ):  # fmt: skip
                for exporter in _exporters(runtime, workload, grid, context):
                    for repeat in range(grid.repeats or section.repeats):
                        cell = InferCell(
                            workload=workload, runtime=runtime, provider=provider,
                            exporter=exporter, batch=batch, threads=threads, repeat=repeat,
                            precision=precision, options=options, load=load, sessions=sessions,
                        )  # fmt: skip
                        if not grid.where_it_fits or context.fits(cell, self.gpus(cell)):
                            yield cell

    def inputs(self, cell: InferCell, context: Context) -> dict[str, Cell]:
        """The model with its outputs beside it; for a runtime without ONNX, weights as well.

        Such a runtime is compared with the same outputs: it takes any export of the workload, and
        where the study asks for none, the first that can be made.
        """
        if cell.exporter is not None and cell.precision != "fp32":
            converted = ConvertCell(
                workload=cell.workload, exporter=cell.exporter, precision=cell.precision
            )
            return {"export": converted}
        if cell.exporter is not None:
            return {"export": exported_model(cell.workload, cell.exporter, context)}
        framework = context.section("export").framework
        export = context.first("export", _workload, cell.workload) or ExportCell(
            workload=cell.workload,
            framework=framework,
            exporter=_any_exporter(framework, context),
        )
        weights = context.first("train", exported_by, (cell.workload, framework))
        assert weights is not None
        return {"export": export, "weights": weights}

    def plugins(self, cell: InferCell) -> list[tuple[Registry[Any], str]]:
        """The runtime; where it builds the model itself, workload and dataset."""
        own = workload_plugins(cell.workload) if cell.exporter is None else []
        return [(RUNTIMES, cell.runtime), *own]

    def spec(self, cell: InferCell, context: Context) -> dict[str, Any]:
        """The hyper-parameters, and how long to measure."""
        section = context.section("infer")
        keys = ("warmup", "min_runs", "max_seconds", *(["load_seconds"] if cell.load else []))
        slow = section.measure.get(cell.workload)
        own = slow.model_dump(exclude_none=True) if slow else {}
        built = {"parameters": context.values(cell.workload)} if cell.exporter is None else {}
        return built | {
            "limits": {key: getattr(section, key) for key in keys} | own,
            "options": session_options(cell.options, cell.threads, cell.provider, section.options),
        }

    def offers(self) -> Iterable[tuple[str, str, str]]:
        """Runtimes on each execution provider."""
        workload = WORKLOADS.names()[0]
        for name in RUNTIMES:
            for provider in ("cpu", "cuda"):
                cell = InferCell(workload=workload, runtime=name, provider=provider, batch=1)
                reason = RUNTIMES.get(name).supports(cell)
                state = "skipped" if reason else "available"
                yield f"runtime {name} on {provider}", state, reason or ""

    def environment(self, cell: InferCell) -> str:
        """The runtime's."""
        return RUNTIMES.get(cell.runtime).environment

    def gpus(self, cell: InferCell) -> int:
        """One for the provider."""
        return 1 if cell.provider in GPU_PROVIDERS else 0


def _check_names(section: InferSection, grid: InferGrid, where: str, context: Context) -> None:
    """Raise BadInput for an exporter, precision or set of options that nothing in the study has."""
    exporters = [*context.section("export").exporters, *context.section("models").exporters]
    for name in grid.exporters or ():
        if name not in exporters:
            raise BadInput(
                f"{where}.exporters: '{name}' is not among export.exporters "
                f"{context.section('export').exporters} and models.exporters "
                f"{context.section('models').exporters}"
            )
    for name in grid.precisions:
        if name not in ONNX_PRECISIONS:
            raise unknown_name("precision", name, ONNX_PRECISIONS, f"{where}.precisions")
    sets = [EQUAL, LANGUAGE_DEFAULTS, *section.options]
    for name in grid.options:
        if name not in sets:
            raise unknown_name("set of session options", name, sets, f"{where}.options")


def _check_made(name: str, grid: InferGrid, where: str, context: Context, takes_onnx: bool) -> None:
    if not takes_onnx:
        raise BadInput(
            f"{where}.workloads: '{name}' is a model that only runtimes of ONNX can run, got "
            f"{grid.runtimes}"
        )
    if not (grid.exporters or context.section("models").exporters):
        raise BadInput(
            f"{where}.workloads: '{name}' is made by exporters: expected `exporters` here or in "
            "`models`"
        )
    if not any(True for _ in _made_by(name, grid, context)):
        raise BadInput(
            f"{where}.workloads: no exporter makes '{name}' of "
            f"{grid.exporters or context.section('models').exporters}"
        )


def _check_trained(
    name: str, grid: InferGrid, where: str, context: Context, takes_onnx: bool
) -> None:
    export = context.section("export")
    if takes_onnx and not export.exporters:
        raise BadInput(
            f"{where}.runtimes: {grid.runtimes} take ONNX models, and export.exporters names no "
            "exporter that would make them"
        )
    WORKLOADS.get(name, f"{where}.workloads: no model of plugins.md, so a workload")
    if takes_onnx and name not in export.workloads:
        raise BadInput(
            f"{where}.workloads: '{name}' is not among export.workloads {export.workloads}"
        )
    if context.first("train", exported_by, (name, export.framework)) is None:
        raise BadInput(
            f"{where}.workloads: '{name}' takes its weights from {export.framework} single on one "
            "rank, which no train grid has"
        )


def _made_by(name: str, grid: InferGrid, context: Context) -> Iterable[str]:
    """Yield the exporters that can make a model; what they cannot is told by the stage `model`."""
    for exporter in grid.exporters or context.section("models").exporters:
        made = model_of(name, exporter)
        if not (MODELS.get(name).supports(made) or EXPORTERS.get(exporter).supports(made)):
            yield exporter


def _exporters(
    runtime: str, workload: str, grid: InferGrid, context: Context
) -> Iterable[str | None]:
    """Return whose files a runtime runs of a workload; None: it builds the model itself."""
    takes_onnx = RUNTIMES.get(runtime).uses_exporter
    if workload in MODELS:
        return _made_by(workload, grid, context) if takes_onnx else ()
    exported = context.section("export").exporters
    named = [name for name in grid.exporters or exported if name in exported]
    return named if takes_onnx else [None]


def _any_exporter(framework: str, context: Context) -> str:
    for name in EXPORTERS:
        if EXPORTERS.get(name).framework == framework:
            return name
    taken = sorted({EXPORTERS.get(name).framework for name in EXPORTERS})
    raise BadInput(
        f"{context.where('export.framework')}: no exporter takes models of {framework}, which "
        f"inference is compared with; expected one of {', '.join(taken)}"
    )
