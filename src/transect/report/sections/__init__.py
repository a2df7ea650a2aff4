"""The sections of the report, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Callable

from transect.analysis.load import Problem
from transect.report.blocks import Prose, Section
from transect.report.context import Context
from transect.report.sections.communication import communication_section
from transect.report.sections.equality import equality_section
from transect.report.sections.export import export_section
from transect.report.sections.failures import failures_section
from transect.report.sections.frameworks import frameworks_section
from transect.report.sections.hardware import hardware_section
from transect.report.sections.methods import methods_section
from transect.report.sections.provenance import provenance_section
from transect.report.sections.published import published_section
from transect.report.sections.roofline import roofline_section
from transect.report.sections.runtimes import runtimes_section
from transect.report.sections.speed import speed_section
from transect.report.text import clean

__all__ = ["all_sections"]

_SECTIONS: tuple[Callable[[Context], Section], ...] = (
    frameworks_section,
    speed_section,
    communication_section,
    equality_section,
    export_section,
    runtimes_section,
    roofline_section,
    hardware_section,
    published_section,
    provenance_section,
    methods_section,
)


def all_sections(context: Context) -> list[Section]:
    """Make every section that follows the verdict. Problems met on the way join the context."""
    made = [_guarded(make, context) for make in _SECTIONS]
    # Last, because drawing the others may find side files that cannot be read.
    return [failures_section(context), *made]


def _guarded(make: Callable[[Context], Section], context: Context) -> Section:
    """Make a section; one that cannot be made says so, and the rest of the report stands."""
    try:
        return make(context)
    except Exception as error:  # whatever a record holds, a report has to come of it
        name = make.__name__.removesuffix("_section")
        what = f"this section could not be made: {type(error).__name__}: {error}"
        context.problems.append(Problem(where=f"section {name}", what=what))
        title = name.capitalize()
        return Section(id=name, title=title, lead="", blocks=[Prose(clean(what))])
