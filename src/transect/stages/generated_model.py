"""The generated-model stage: models beyond the trained ones, to ONNX."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from transect.domain.axes.export import ModelCell
from transect.domain.errors import BadInput
from transect.domain.registry import Registry
from transect.domain.study import Section
from transect.onnx_models.exporters import EXPORTERS
from transect.onnx_models.models import MODELS
from transect.planning.context import Context
from transect.planning.stage import STAGES, Stage


class ModelsSection(Section):
    """Models with drawn weights: every model by every exporter, those that cannot be are skipped."""

    models: list[str] = Field(default=[], description="names from [plugins.md](plugins.md#model)")
    exporters: list[str] = Field(default=[], description="names from [plugins.md](plugins.md#exporter)")


def model_of(name: str, exporter: str) -> ModelCell:
    """Return the cell of a model by an exporter, built in that one's framework."""
    framework = EXPORTERS.get(exporter).framework
    return ModelCell(workload=name, framework=framework, exporter=exporter)


@STAGES.register("generated-model")
class MadeModels(Stage[ModelCell]):
    """Builds models in their frameworks, writes them to ONNX and checks what they compute."""

    payload = "transect.payloads.generated_model:make"
    key = "models"
    section = ModelsSection

    def check(self, section: ModelsSection, context: Context) -> None:
        """Models and exporters are there."""
        context.knows(MODELS, section.models, "models.models")
        context.knows(EXPORTERS, section.exporters, "models.exporters")
        if section.models and not section.exporters:
            raise BadInput(f"{context.where('models.models')}: give no cell without `exporters`")

    def size(self, section: ModelsSection) -> int:
        """Count the cross product."""
        return len(section.models) * len(section.exporters)

    def cells(self, section: ModelsSection, context: Context) -> Iterable[ModelCell]:
        """Every model by every exporter."""
        for name in section.models:
            for exporter in section.exporters:
                yield model_of(name, exporter)

    def plugins(self, cell: ModelCell) -> list[tuple[Registry[Any], str]]:
        """Model and exporter."""
        return [(MODELS, cell.workload), (EXPORTERS, cell.exporter)]

    def spec(self, cell: ModelCell, context: Context) -> dict[str, Any]:
        """What weights and inputs are drawn from."""
        return {"seed": context.study.seed}

    def environment(self, cell: ModelCell) -> str:
        """The exporter's."""
        return EXPORTERS.get(cell.exporter).environment
