"""How the runtimes of one chart are told apart: colour by name, shape by their order."""

from __future__ import annotations

from collections.abc import Iterable

from transect.analysis.groups import Group
from transect.analysis.serving import InferGroup
from transect.report.engine.charts.theme import Style
from transect.report.engine.context import Context

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


class RuntimeSeries:
    """Names and styles of runtimes with their exporters; an exporter is named where several are."""

    def __init__(self, context: Context, groups: Iterable[InferGroup]) -> None:
        cells = [group.cell for group in groups]
        self._context = context
        self._runtimes = sorted({cell.runtime for cell in cells})
        self._exporters = sorted({cell.exporter for cell in cells if cell.exporter})

    def name(self, group: Group) -> str:
        """Return what the legend calls a group's line."""
        runtime, exporter = str(group.cell.get("runtime")), group.cell.get("exporter")
        return f"{runtime} · {exporter}" if len(self._exporters) > 1 and exporter else runtime

    def style(self, group: Group) -> Style:
        """Return the style of a group's line."""
        runtime, exporter = group.cell.get("runtime"), group.cell.get("exporter")
        shift = self._runtimes.index(runtime)
        shift += self._exporters.index(exporter) if exporter else 0
        color = self._context.styles.get(runtime).color
        return Style(color, _SHAPES[shift % len(_SHAPES)])
