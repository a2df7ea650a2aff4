"""The prose of a topic: what findings say of sets of records, for the topic's golden file.

`pytest FILE --snapshot-update` writes `__snapshots__/FILE.ambr` anew; a person reads its difference. What a finding
says by its numbers, its sureness and whom it names is the business of the tests beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from said_of_records import findings, lines

from transect.domain.record import Record
from transect.report.findings.finding import Finding

__all__ = ["prose", "written"]


def prose(sets: Mapping[str, Iterable[Record]], *kinds: str) -> dict[str, list[str]]:
    """Return what findings of these kinds say of each set: what an earlier one said already is cut short."""
    said: dict[str, list[str]] = {}
    known: set[str] = set()
    for name, records in sets.items():
        found = findings(*records)
        every = written(one for kind in kinds for one in found.get(kind, ()))
        said[name] = [f"{one[:60]} …" if one in known else one for one in every]
        known.update(every)
    return said


def written(found: Iterable[Finding]) -> list[str]:
    """Return findings as they are read."""
    return ["\n".join(lines(one)) for one in found]
