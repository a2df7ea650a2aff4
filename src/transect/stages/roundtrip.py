"""The roundtrip stage: made models into other frameworks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from transect.domain.axes.export import RoundtripCell
from transect.domain.cell import Cell
from transect.domain.registry import Registry
from transect.domain.study import Section, check_together
from transect.domain.takes import Takes
from transect.onnx_models.exporters import EXPORTERS
from transect.onnx_models.facts import FACTS
from transect.onnx_models.loaders import LOADERS
from transect.onnx_models.models import MODELS
from transect.planning.context import Context
from transect.planning.stage import STAGES, Stage, points
from transect.stages.generated_model import model_of


class RoundtripSection(Section):
    """Round trips: every model by every exporter into every framework that loads ONNX."""

    models: list[str] = Field(default=[], description="names from [plugins.md](plugins.md#model)")
    exporters: list[str] = Field(default=[], description="whose files; names from [plugins.md](plugins.md#exporter)")
    loaders: list[str] = Field(default=[], description="names from [plugins.md](plugins.md#loader)")


@STAGES.register("roundtrip")
class Roundtrip(Stage[RoundtripCell]):
    """Lets another framework load an exported file, and compares what it computes."""

    payload = "transect.payloads.roundtrip:roundtrip"
    takes = {"model": Takes("model.onnx", "inputs", "expected", FACTS)}
    key = "roundtrip"
    section = RoundtripSection
    needs = ("generated-model",)

    def check(self, section: RoundtripSection, context: Context) -> None:
        """Models, exporters and loaders are there."""
        for registry, key in ((MODELS, "models"), (EXPORTERS, "exporters"), (LOADERS, "loaders")):
            context.knows(registry, getattr(section, key), f"roundtrip.{key}")
        check_together(section, context.where("roundtrip"), "models", "exporters", "loaders")

    def size(self, section: RoundtripSection) -> int:
        """Count the cross product."""
        return len(section.models) * len(section.exporters) * len(section.loaders)

    def cells(self, section: RoundtripSection, context: Context) -> Iterable[RoundtripCell]:
        """Every model by every exporter into every framework."""
        for point in points(workload=section.models, exporter=section.exporters, loader=section.loaders):
            yield RoundtripCell(**point)

    def inputs(self, cell: RoundtripCell, context: Context) -> dict[str, Cell]:
        """The file, with what was drawn and computed."""
        return {"model": model_of(cell.workload, cell.exporter)}

    def plugins(self, cell: RoundtripCell) -> list[tuple[Registry[Any], str]]:
        """The loader; how the file was made does not matter here."""
        return [(LOADERS, cell.loader)]

    def supports(self, cell: RoundtripCell) -> str | None:
        """Whatever can be exported."""
        made = model_of(cell.workload, cell.exporter)
        return MODELS.get(cell.workload).supports(made) or EXPORTERS.get(cell.exporter).supports(made)

    def environment(self, cell: RoundtripCell) -> str:
        """The loader's."""
        return LOADERS.get(cell.loader).environment
