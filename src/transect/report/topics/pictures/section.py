"""Section: every comparison, the way to the target, and the course of the study."""

from __future__ import annotations

from collections.abc import Iterator

from transect.report.engine.blocks import Part
from transect.report.engine.context import Context
from transect.report.topics.pictures.course import course_charts
from transect.report.topics.pictures.forest import forest_charts
from transect.report.topics.pictures.front import MAX_PANELS, panels
from transect.report.topics.pictures.scores import score_charts

_MAX_CHARTS = 12


def pictures_body(context: Context) -> Iterator[Part]:
    """Draw what no topic shows alone."""
    yield from panels(context, slice(MAX_PANELS, _MAX_CHARTS))
    yield from forest_charts(context)
    yield from score_charts(context)
    yield from course_charts(context)
