"""The export stage: trained models to ONNX."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from transect.domain.axes.data import data_of
from transect.domain.axes.export import ExportCell
from transect.domain.cell import Cell
from transect.domain.registry import Registry
from transect.domain.study import Section
from transect.domain.takes import DataArrays, Takes
from transect.onnx_models.exporters import EXPORTERS
from transect.planning.context import Context
from transect.planning.stage import STAGES, Stage, points
from transect.stages.dataset import workload_plugins
from transect.stages.train.stage import trained
from transect.training.frameworks import FRAMEWORKS
from transect.training.workloads import WORKLOADS


class ExportSection(Section):
    """ONNX exports: which trained workloads, of which framework, by which exporters."""

    workloads: list[str] = Field(
        default=[], description="each must be trained by `framework` with `single` on one CPU rank, one thread"
    )
    framework: Annotated[str, AfterValidator(FRAMEWORKS.named)] = Field(
        default="torch", description="whose weights are exported"
    )
    exporters: list[str] = Field(default=[], description="names from [plugins.md](plugins.md#exporter)")


@STAGES.register("export")
class Export(Stage[ExportCell]):
    """Writes a trained model to ONNX and checks it against its framework."""

    payload = "transect.payloads.export:export"
    takes = {"data": DataArrays(), "weights": Takes("weights.npz")}
    key = "export"
    section = ExportSection
    needs = ("dataset", "train")

    def check(self, section: ExportSection, context: Context) -> None:
        """Exporters and framework are there, and every workload is trained."""
        context.knows(EXPORTERS, section.exporters, "export.exporters")
        where = context.where("export.workloads")
        if context.knows(FRAMEWORKS, [section.framework], "export.framework"):
            for workload in section.workloads:
                with context.complaints.noted():
                    if context.knows(WORKLOADS, [workload], "export.workloads"):
                        trained(workload, section.framework, context, where)

    def cells(self, section: ExportSection, context: Context) -> Iterable[ExportCell]:
        """Every workload by every exporter."""
        for point in points(workload=section.workloads, exporter=section.exporters):
            yield ExportCell(**point, framework=section.framework)

    def inputs(self, cell: ExportCell, context: Context) -> dict[str, Cell]:
        """Test data, and weights of one training."""
        return {"data": data_of(cell.workload), "weights": trained(cell.workload, cell.framework, context)}

    def plugins(self, cell: ExportCell) -> list[tuple[Registry[Any], str]]:
        """Exporter, workload and dataset."""
        return [(EXPORTERS, cell.exporter), *workload_plugins(cell.workload)]

    def spec(self, cell: ExportCell, context: Context) -> dict[str, Any]:
        """The hyper-parameters."""
        return {"parameters": context.values(cell.workload)}

    def environment(self, cell: ExportCell) -> str:
        """The exporter's."""
        return EXPORTERS.get(cell.exporter).environment
