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
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage
from transect.runtimes import RUNTIMES
from transect.runtimes.options import EQUAL, LANGUAGE_DEFAULTS, check_options, session_options
from transect.stages.data.plan import workload_plugins
from transect.stages.export.cell import ExportCell
from transect.stages.infer.cell import InferCell
from transect.stages.train.plan import exported_by
from transect.training.workloads import WORKLOADS

__all__ = ["Infer", "InferGrid", "InferSection"]


class InferGrid(Section):
    """The cross product of its lists. A runtime that takes no ONNX model ignores `exporters`."""

    workloads: Names = Field(description="each must stand in `export.workloads`")
    runtimes: Names = Field(description="names from [plugins.md](plugins.md#runtime)")
    exporters: Names | None = Field(
        default=None,
        description="each must stand in `export.exporters`; null: all of them; not used by "
        "runtimes without ONNX",
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
    needs = ("export", "train")
    placement = Placement(by_workload=True)

    def check(self, section: InferSection, context: Context) -> None:
        """Runtimes are there, and every model is exported or at least trained."""
        export = context.section("export")
        check_options(section.options, context.where("infer.options"))
        for number, grid in enumerate(section.grids):
            where = f"infer.grids.{number}"
            runtimes = [
                RUNTIMES.get(name, context.where(f"{where}.runtimes")) for name in grid.runtimes
            ]
            for name in grid.exporters or ():
                if name not in export.exporters:
                    raise BadInput(
                        f"{context.where(where)}.exporters: '{name}' is not among "
                        f"export.exporters {export.exporters}"
                    )
            for name in grid.options:
                if name not in (EQUAL, LANGUAGE_DEFAULTS, *section.options):
                    raise unknown_name(
                        "set of session options", name,
                        [EQUAL, LANGUAGE_DEFAULTS, *section.options],
                        context.where(f"{where}.options"),
                    )  # fmt: skip
            if grid.sessions != [1] and not grid.loads:
                raise BadInput(
                    f"{context.where(where)}.sessions: {grid.sessions} serve an offered load: expected "
                    "`loads` beside it"
                )
            takes_onnx = any(runtime.uses_exporter for runtime in runtimes)
            if takes_onnx and not export.exporters:
                raise BadInput(
                    f"{context.where(where)}.runtimes: {grid.runtimes} take ONNX models, and "
                    "export.exporters names no exporter that would make them"
                )
            for name in grid.workloads:
                WORKLOADS.get(name, context.where(f"{where}.workloads"))
                if takes_onnx and name not in export.workloads:
                    raise BadInput(
                        f"{context.where(where)}.workloads: '{name}' is not among "
                        f"export.workloads {export.workloads}"
                    )
                if context.first("train", exported_by, (name, export.framework)) is None:
                    raise BadInput(
                        f"{context.where(where)}.workloads: '{name}' takes its weights from "
                        f"{export.framework} single on one rank, which no train grid has"
                    )

    def cells(self, section: InferSection, context: Context) -> Iterable[Cell]:
        """The cross product of each grid, with its repeats."""
        exported = context.section("export").exporters
        for grid in section.grids:
            for runtime, workload, provider, batch, threads, precision, options, load, sessions in product(
                grid.runtimes, grid.workloads, grid.providers, grid.batches, grid.threads,
                grid.precisions, grid.options, grid.loads or [None], grid.sessions,
            ):  # fmt: skip
                takes_onnx = RUNTIMES.get(runtime).uses_exporter
                for exporter in (grid.exporters or exported) if takes_onnx else [None]:
                    for repeat in range(grid.repeats or section.repeats):
                        cell = InferCell(
                            workload=workload, runtime=runtime, provider=provider,
                            exporter=exporter, batch=batch, threads=threads, repeat=repeat,
                            precision=precision, options=options, load=load, sessions=sessions,
                        )  # fmt: skip
                        if not grid.where_it_fits or context.fits(cell, self.gpus(cell)):
                            yield cell

    def inputs(self, cell: InferCell, context: Context) -> dict[str, Cell]:
        """The export, with the framework's outputs beside it, and the weights.

        A runtime without ONNX is compared with the same outputs: it takes any export of the
        workload, and where the study asks for none, the first that can be made.
        """
        framework = context.section("export").framework
        export: Cell | None
        if cell.exporter is not None:
            export = ExportCell(workload=cell.workload, framework=framework, exporter=cell.exporter)
        else:
            export = context.first("export", _workload, cell.workload) or ExportCell(
                workload=cell.workload,
                framework=framework,
                exporter=_any_exporter(framework, context),
            )
        weights = context.first("train", exported_by, (cell.workload, framework))
        assert weights is not None
        return {"export": export, "weights": weights}

    def plugins(self, cell: InferCell) -> list[tuple[Registry[Any], str]]:
        """Runtime, workload and dataset."""
        return [(RUNTIMES, cell.runtime), *workload_plugins(cell.workload)]

    def spec(self, cell: InferCell, context: Context) -> dict[str, Any]:
        """The hyper-parameters, and how long to measure."""
        section = context.section("infer")
        keys = ("warmup", "min_runs", "max_seconds", *(["load_seconds"] if cell.load else []))
        return {
            "parameters": context.values(cell.workload),
            "limits": {key: getattr(section, key) for key in keys},
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


def _any_exporter(framework: str, context: Context) -> str:
    for name in EXPORTERS:
        if EXPORTERS.get(name).framework == framework:
            return name
    taken = sorted({EXPORTERS.get(name).framework for name in EXPORTERS})
    raise BadInput(
        f"{context.where('export.framework')}: no exporter takes models of {framework}, which "
        f"inference is compared with; expected one of {', '.join(taken)}"
    )
