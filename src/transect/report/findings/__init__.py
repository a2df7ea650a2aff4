"""Findings: one sentence each, with its evidence and how sure it is."""

from __future__ import annotations

from collections.abc import Callable

from transect.analysis.load import Problem
from transect.report.context import Context
from transect.report.findings.communication import communication_findings
from transect.report.findings.coverage import coverage_findings
from transect.report.findings.distribution import distribution_findings
from transect.report.findings.equality import equality_findings
from transect.report.findings.finding import Finding
from transect.report.findings.hardware import hardware_findings
from transect.report.findings.models import export_findings
from transect.report.findings.serving import serving_findings
from transect.report.findings.training import training_findings
from transect.report.findings.twins import twin_findings

_KINDS: tuple[Callable[[Context], list[Finding]], ...] = (
    training_findings,
    distribution_findings,
    twin_findings,
    communication_findings,
    equality_findings,
    export_findings,
    serving_findings,
    hardware_findings,
    coverage_findings,
)

__all__ = ["Finding", "all_findings"]


def all_findings(context: Context) -> list[Finding]:
    """Return every finding of a study in the order in which a reader needs them."""
    found: list[Finding] = []
    for make in _KINDS:
        try:
            found += make(context)
        except Exception as error:  # whatever a record holds, a report has to come of it
            what = f"these findings could not be made: {type(error).__name__}: {error}"
            context.problems.append(Problem(where=make.__name__, what=what))
    return found
