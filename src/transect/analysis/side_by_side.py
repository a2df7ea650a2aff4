"""Were groups measured side by side, and whole? What differs between two days or processors is in no repeat's noise.

Nor is what a repeat that failed would have shown: those that ran into their limit of time are the slow ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from transect.analysis.entries import AnyRecord
from transect.analysis.noise import trimmed

__all__ = ["Ran", "apart"]

# Runs that lie farther apart, in h, were not measured in turn, as the cells of one block are.
_MOST_H = 12.0


class Ran(Protocol):
    """What a group tells of its runs: all of its records, those with a result, and whether others were at work."""

    @property
    def records(self) -> tuple[AnyRecord, ...]:
        """Every repeat's record."""
        ...

    @property
    def ok(self) -> tuple[AnyRecord, ...]:
        """Those whose numbers may be used."""
        ...

    @property
    def too_disturbed(self) -> bool:
        """Whether others were at work in more of them than a middle leaves out."""
        ...


def apart(groups: Sequence[Ran]) -> str:
    """Say what keeps groups from having been measured side by side and whole, as their records tell; or nothing."""
    for group in groups:
        lost = len(group.records) - len(group.ok)
        if lost > trimmed(len(group.records)):
            return f"{lost} of {len(group.records)} repeats of one gave no result: the rest may be the better ones"
    told = [
        {str(model) for record in group.ok if (model := record.provenance.get("cpu_model"))}
        for group in groups
    ]
    known = [models for models in told if models]
    if any(models != known[0] for models in known):
        return "measured on different processors, which no repeat's noise covers"
    spans = [span for group in groups if (span := _span(group)) is not None]
    if len(spans) < 2:
        return ""
    gap = max(began for began, _ in spans) - min(ended for _, ended in spans)
    hours = gap.total_seconds() / 3600
    if hours <= _MOST_H:
        return ""
    return f"measured {hours:.0f} h apart: what changed in between is in no repeat's noise"


def _span(group: Ran) -> tuple[datetime, datetime] | None:
    """Return when its first repeat began and its last one ended; None where no record tells."""
    try:
        began = min(_moment(record.started) for record in group.ok)
        return began, max(_moment(record.ended) for record in group.ok)
    except ValueError:  # none, or a time that nobody can read
        return None


def _moment(told: str) -> datetime:
    """Return a record's time; one without a zone is meant in UTC, as all are written."""
    moment = datetime.fromisoformat(told)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
