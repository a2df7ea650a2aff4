"""The convert stage: exported models in lower precisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from transect.domain.axes.data import data_of
from transect.domain.axes.export import PRECISIONS, ConvertCell, ExportCell, Lower, ModelCell
from transect.domain.cell import Cell
from transect.domain.registry import Registry
from transect.domain.study import Section
from transect.domain.takes import DataArrays, Takes
from transect.onnx_models.exporters import EXPORTERS
from transect.onnx_models.facts import FACTS
from transect.onnx_models.models import MODELS
from transect.planning.context import Context
from transect.planning.stage import STAGES, Stage, points
from transect.stages.dataset import workload_plugins
from transect.stages.generated_model import model_of
from transect.stages.train.stage import trained
from transect.training.workloads import WORKLOADS


class ConvertSection(Section):
    """Conversions: every workload or model by every exporter in every precision."""

    workloads: list[str] = Field(
        default=[], description="trained ones, as in `export.workloads`, and names from [plugins.md](plugins.md#model)"
    )
    exporters: list[str] = Field(default=[], description="whose files; names from [plugins.md](plugins.md#exporter)")
    precisions: list[Lower] = Field(default=[*PRECISIONS], description=", ".join(PRECISIONS))


def exported_model(workload: str, exporter: str, context: Context) -> ModelCell | ExportCell:
    """Return the cell that makes the float32 file of a made model or of a trained workload."""
    if workload in MODELS:
        return model_of(workload, exporter)
    framework = context.section("export").framework
    return ExportCell(workload=workload, framework=framework, exporter=exporter)


@STAGES.register("convert")
class Convert(Stage[ConvertCell]):
    """Converts a float32 ONNX file, and says what that cost in accuracy."""

    payload = "transect.payloads.convert:convert"
    # A made model comes with what was drawn with it, a trained one with its data.
    takes = {
        "model": Takes(
            "model.onnx", FACTS, more=lambda spec: () if "data" in spec["inputs"] else ("inputs", "calibration")
        ),
        "data": DataArrays(),
    }
    key = "convert"
    section = ConvertSection
    needs = ("dataset", "export", "generated-model", "train")

    def check(self, section: ConvertSection, context: Context) -> None:
        """Exporters are there, and every workload is a made model or is trained."""
        context.knows(EXPORTERS, section.exporters, "convert.exporters")
        where, framework = context.where("convert.workloads"), context.section("export").framework
        for name in section.workloads:
            if name in MODELS:
                continue
            with context.naming():
                WORKLOADS.get(name, f"{where}: no model of plugins.md, so a workload")
            with context.complaints.noted():
                if name in WORKLOADS:
                    trained(name, framework, context, where)

    def size(self, section: ConvertSection) -> int:
        """Count the cross product."""
        return len(section.workloads) * len(section.exporters) * len(section.precisions)

    def cells(self, section: ConvertSection, context: Context) -> Iterable[ConvertCell]:
        """Every workload by every exporter in every precision."""
        for point in points(workload=section.workloads, exporter=section.exporters, precision=section.precisions):
            yield ConvertCell(**point)

    def inputs(self, cell: ConvertCell, context: Context) -> dict[str, Cell]:
        """The float32 file; of a trained workload the data, with its labels, as well."""
        model = exported_model(cell.workload, cell.exporter, context)
        if isinstance(model, ModelCell):
            return {"model": model}
        return {"model": model, "data": data_of(cell.workload)}

    def plugins(self, cell: ConvertCell) -> list[tuple[Registry[Any], str]]:
        """What names the samples; how the file was made does not matter here."""
        return [] if cell.workload in MODELS else workload_plugins(cell.workload)

    def supports(self, cell: ConvertCell) -> str | None:
        """Whatever can be exported, in the precisions that there are."""
        if cell.precision not in PRECISIONS:
            return f"models are converted to {', '.join(PRECISIONS)}, not to {cell.precision}"
        exporter = EXPORTERS.get(cell.exporter)
        if cell.workload in MODELS:
            made = model_of(cell.workload, cell.exporter)
            return MODELS.get(cell.workload).supports(made) or exporter.supports(made)
        # Which framework trained it is the study's; whether the exporter takes trained ones is not.
        framework = exporter.framework
        return exporter.supports(ExportCell(workload=cell.workload, framework=framework, exporter=cell.exporter))

    def spec(self, cell: ConvertCell, context: Context) -> dict[str, Any]:
        """Of dynamic ranges the sizes of batches that are inferred: outputs depend on them."""
        if cell.precision != "int8-dynamic":
            return {}
        sizes = {taker.get("batch") for taker in context.takers(cell)}
        return {"batches": sorted(size for size in sizes if size)}

    def environment(self, cell: ConvertCell) -> str:
        """One with onnx and ONNX Runtime's own converters."""
        return "torch"
