"""The axes of benchmarks, and of logs of benchmarks."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from transect.domain.cell import Axis, Cell
from transect.domain.options import OptionsAxis


class BenchCell(Cell):
    """One benchmark with one problem."""

    always: ClassVar[tuple[str, ...]] = ("threads",)

    stage: Literal["bench"] = "bench"
    benchmark: Annotated[str, Axis(place=5, name=True)]
    options: OptionsAxis = ()

    def option(self, name: str, default: int | float | str) -> int | float | str:
        """Return an option of the benchmark, or its default."""
        return dict(self.options).get(name, default)


class IngestCell(Cell):
    """The logs of one path of a study."""

    stage: Literal["ingest"] = "ingest"
    source: Annotated[str, Axis(place=6, name=True)]
