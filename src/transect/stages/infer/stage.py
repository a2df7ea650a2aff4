"""The infer stage: runtimes execute exported models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from transect.domain.axes.data import data_of
from transect.domain.axes.export import ConvertCell, ExportCell
from transect.domain.axes.infer import InferCell
from transect.domain.cell import Cell
from transect.domain.errors import BadInput, check_known
from transect.domain.pairs import PairRule
from transect.domain.registry import Registry
from transect.domain.takes import Takes
from transect.onnx_models.exporters import EXPORTERS
from transect.onnx_models.facts import FACTS, batch_folder
from transect.planning.context import Context
from transect.planning.environments import program_version
from transect.planning.stage import STAGES, Placement, Stage, points
from transect.runtimes import RUNTIMES
from transect.runtimes.options import EQUAL, LANGUAGE_DEFAULTS, check_options, session_options
from transect.stages.convert import exported_model
from transect.stages.dataset import workload_plugins
from transect.stages.infer.grids import InferSection, check_grid, exporters_of
from transect.stages.train.stage import trained
from transect.training.module_model import MODULE_FACTS
from transect.training.own_workload import OwnWorkload
from transect.training.workloads import WORKLOADS

# Beside whom runtimes of ONNX models are set, and beside whom languages.
_FRAMEWORK, _LANGUAGE = "torch-eager", "cpp"


def _workload(cell: ExportCell) -> str:
    return cell.workload


# Compilers of virtual machines need many calls, which at batch 128 take a minute: there the model
# outweighs the call, and how hot the call is matters less.
_MIN_WARM_UPS = 20


def _of_batch(limits: dict[str, Any], batch: int) -> dict[str, Any]:
    """Return the limits of one cell: `warmup` is for batch 1, larger batches take fewer calls."""
    fewest = min(limits["warmup"], _MIN_WARM_UPS)
    return limits | {"warmup": max(fewest, limits["warmup"] // batch)}


def _own_batch(cell: Cell) -> list[str]:
    # Only dynamic ranges make outputs depend on the batch.
    return [batch_folder(cell.get("batch"))] if cell.precision == "int8-dynamic" else []


@STAGES.register("infer")
class Infer(Stage[InferCell]):
    """Executes models through the runner contract."""

    runner = "transect.stages.infer.run:InferRunner"
    # The model, its inputs and its expected outputs, with their tolerance.
    takes = {
        "export": Takes(
            "model.onnx", "inputs", "expected", FACTS, more=lambda spec: _own_batch(Cell.of(**spec["cell"]))
        ),
        "weights": Takes("weights.npz"),
        "data": Takes(MODULE_FACTS),
    }
    measures = True
    key = "infer"
    section = InferSection
    needs = ("export", "train", "generated-model", "convert", "dataset")
    placement = Placement(by_workload=True)
    pairs = (
        # Each runtime beside the framework's own, whoever exported its file.
        PairRule(
            metric="latency",
            rules=("serving.runtime", "runtime.framework"),
            varies=("runtime", "exporter"),
            base={"runtime": (_FRAMEWORK,)},
        ),
        # Those of ONNX files beside the first of them: they are near each other, and far from the framework's.
        PairRule(
            metric="latency",
            rules=("serving.runtime",),
            varies=("runtime", "exporter"),
            first="runtime",
            neither={"exporter": (None,)},
        ),
        PairRule(metric="latency", rules=("serving.exporter",), varies=("exporter",)),
        # Languages: whole calls, as they do different parts of one inside of Run.
        PairRule(
            metric="end_to_end_time",
            rules=("runtime.language",),
            varies=("runtime",),
            base={"runtime": (_LANGUAGE,)},
            both={"options": (EQUAL, LANGUAGE_DEFAULTS), "load": (None,)},
        ),
        PairRule(
            metric="end_to_end_time",
            rules=("overhead.call",),
            varies=("runtime",),
            base={"runtime": ("c",)},
            both={"workload": ("identity-1", "identity-1k", "identity-1m"), "options": (EQUAL,)},
        ),
        PairRule(
            metric="end_to_end_time",
            rules=("overhead.ffi-overhead",),
            varies=("runtime",),
            base={"runtime": (_LANGUAGE,)},
            side={"runtime": ("rust",)},
            both={"options": (EQUAL,), "load": (None,)},
        ),
        # One setting at a time, or all of a published comparison.
        PairRule(
            metric="end_to_end_time", rules=("overhead.ffi-overhead",), varies=("options",), base={"options": (EQUAL,)}
        ),
    )

    def check(self, section: InferSection, context: Context) -> None:
        """Names are known, and every model is made, exported or at least trained."""
        for name, given in section.options.items():
            with context.complaints.noted():
                check_options({name: given}, context.where("infer.options"))
        used = {name for grid in section.grids for name in grid.options}
        with context.complaints.noted():
            check_known("set of a grid", section.options, used, context.where("infer.options"))
        measured = {name for grid in section.grids for name in grid.workloads}
        with context.complaints.noted():
            check_known("workload", section.measure, measured, context.where("infer.measure"))
        for number, grid in enumerate(section.grids):
            with context.complaints.noted():
                check_grid(section, grid, f"infer.grids.{number}", context)

    def cells(self, section: InferSection, context: Context) -> Iterable[InferCell]:
        """The cross product of each grid, with its repeats."""
        for grid in section.grids:
            for point in points(
                runtime=grid.runtimes,
                workload=grid.workloads,
                provider=grid.providers,
                batch=grid.batches,
                threads=grid.threads,
                precision=grid.precisions,
                options=grid.options,
                load=grid.loads or [None],
                sessions=grid.sessions,
            ):
                for exporter in exporters_of(point["runtime"], point["workload"], grid, context):
                    for repeat in range(grid.repeats or section.repeats):
                        cell = InferCell(**point, exporter=exporter, repeat=repeat)
                        if not grid.where_it_fits or context.fits(cell, self.gpus(cell)):
                            yield cell

    def inputs(self, cell: InferCell, context: Context) -> dict[str, Cell]:
        """The model with its outputs beside it; for a runtime without ONNX, weights as well.

        Such a runtime is compared with the same outputs: it takes any export of the workload, and
        where the study asks for none, the first that can be made.
        """
        if cell.exporter is not None and cell.precision != "fp32":
            converted = ConvertCell(workload=cell.workload, exporter=cell.exporter, precision=cell.precision)
            return {"export": converted}
        if cell.exporter is not None:
            return {"export": exported_model(cell.workload, cell.exporter, context)}
        framework = context.section("export").framework
        export = context.first("export", _workload, cell.workload) or ExportCell(
            workload=cell.workload, framework=framework, exporter=_any_exporter(framework, context)
        )
        own = isinstance(WORKLOADS.get(cell.workload), OwnWorkload)
        data = {"data": data_of(cell.workload)} if own else {}
        return data | {"export": export, "weights": trained(cell.workload, framework, context)}

    def plugins(self, cell: InferCell) -> list[tuple[Registry[Any], str]]:
        """The runtime; where it builds the model itself, workload and dataset."""
        of_model = workload_plugins(cell.workload) if cell.exporter is None else []
        return [(RUNTIMES, cell.runtime), *of_model]

    def spec(self, cell: InferCell, context: Context) -> dict[str, Any]:
        """The hyper-parameters, and how long to measure."""
        section = context.section("infer")
        keys = ("warmup", "min_runs", "max_seconds", *(["load_seconds"] if cell.load else []))
        slow = section.measure.get(cell.workload)
        overrides = slow.model_dump(exclude_none=True) if slow else {}
        built = {"parameters": context.values(cell.workload)} if cell.exporter is None else {}
        # What the machine brings to a cell, such as a browser, is part of what is measured.
        tools = {name: program_version(name) for name in RUNTIMES.get(cell.runtime).tools()}
        return (
            built
            | ({"tools": tools} if tools else {})
            | {
                "limits": _of_batch({key: getattr(section, key) for key in keys} | overrides, cell.batch),
                "options": session_options(cell.options, cell.threads, cell.provider, section.options),
            }
        )

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


def _any_exporter(framework: str, context: Context) -> str:
    for name in EXPORTERS:
        if EXPORTERS.get(name).framework == framework:
            return name
    taken = sorted({EXPORTERS.get(name).framework for name in EXPORTERS})
    raise BadInput(
        f"{context.where('export.framework')}: no exporter takes models of {framework}, which "
        f"inference is compared with; expected one of {', '.join(taken)}"
    )
