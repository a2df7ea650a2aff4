"""The ingest stage: logs that somebody else's runs left."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from transect.domain.axes.bench import IngestCell
from transect.domain.errors import BadInput
from transect.domain.registry import Registry
from transect.domain.study import Section
from transect.hpc.base import PARSERS
from transect.hpc.refusal import STRICT, checked_limits
from transect.hpc.sources import log_sources
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage


class IngestSection(Section):
    """Logs of benchmarks that ran elsewhere."""

    paths: list[str] = Field(default=[], description="files or folders, relative to the study file")
    limits: Literal["strict"] | dict[str, tuple[float | None, float | None]] = Field(
        default={},
        description="what is refused beyond what a log itself refutes: `strict`, all that is suspicious, or metrics "
        "with the lowest and the highest value that is believed, in the metric's unit",
    )


@cache
def _sources(context: Context) -> dict[str, Path]:
    """Return every path by a name of its own. Raises BadInput for one that is not there."""
    paths = [context.file.parent / given for given in context.section("ingest").paths]
    for path in paths:
        if not path.exists():
            raise BadInput(f"{context.file}: key 'ingest.paths': {path}: no such file or folder")
    return log_sources(paths)


@STAGES.register("ingest")
class Ingest(Stage[IngestCell]):
    """Reads logs: detects the benchmark, extracts its metrics, validates them."""

    payload = "transect.payloads.ingest:run"
    runner = "transect.stages.ingest.run:IngestRunner"
    key = "ingest"
    section = IngestSection
    placement = Placement(local=True)

    def cells(self, section: IngestSection, context: Context) -> Iterable[IngestCell]:
        """One for each path."""
        for name in _sources(context):
            yield IngestCell(source=name)

    def plugins(self, cell: IngestCell) -> list[tuple[Registry[Any], str]]:
        """All parsers: a log may be any benchmark's."""
        return [(PARSERS, name) for name in PARSERS]

    def spec(self, cell: IngestCell, context: Context) -> dict[str, Any]:
        """Where the logs are, and what is refused of them, where the study says."""
        limits = context.section("ingest").limits
        if limits and limits != STRICT:
            checked_limits(limits, f"{context.file}: key 'ingest.limits'")
        path = str(_sources(context)[cell.source])
        return {"path": path} | ({"limits": limits} if limits else {})

    def environment(self, cell: IngestCell) -> str:
        """The driver's own."""
        return ""

    def files(self, spec: dict[str, Any]) -> list[Path]:
        """The logs."""
        return [Path(spec["path"])]
