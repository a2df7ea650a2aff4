"""A stage that calls sys.exit wherever it is asked to."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pydantic import Field

from transect.domain.study import Section
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage
from transect.stages.quits.cell import QuitsCell


class QuitsSection(Section):
    """Where to quit."""

    places: list[str] = Field(default=[], description="names of its cells, and where each quits")


@STAGES.register("quits")
class Quits(Stage[QuitsCell]):
    """Quits."""

    runner = "transect.stages.quits.run:QuitsRunner"
    key = "quits"
    section = QuitsSection
    placement = Placement(local=True)

    def environment(self, cell: QuitsCell) -> str:
        """The driver's own."""
        return ""

    def check(self, section: QuitsSection, context: Context) -> None:
        """Quit while the study is planned."""
        if "check" in section.places:
            sys.exit(0)

    def cells(self, section: QuitsSection, context: Context) -> Iterable[QuitsCell]:
        """One for each place."""
        for place in section.places:
            yield QuitsCell(where=place)

    def spec(self, cell: QuitsCell, context: Context) -> dict[str, str]:
        """Quit while a cell is planned."""
        if cell.where == "spec":
            sys.exit(0)
        return {}

    def supports(self, cell: QuitsCell) -> str | None:
        """Quit in the driver and in the runner."""
        if cell.where == "supports":
            sys.exit(0)
        return None
