"""The prose of a topic: what findings say of sets of records, for the topic's golden file.

`pytest FILE --snapshot-update` writes `__snapshots__/FILE.ambr` anew; a person reads its difference. What a finding
says by its numbers, its sureness and whom it names is the business of the tests beside.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping

from said_of_records import findings

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
    """Return findings as they are read: how sure, the sentence, its evidence, what is decided."""
    return [
        "\n".join(_lines(f"{one.sureness}: {one.text}") + _lines(_stable(one.evidence), "    "))
        for one in found
    ]


def _stable(text: str) -> str:
    """Leave out what other machines may tell otherwise: tiny chances, whose last bits differ, and a cell's digest."""
    text = re.sub(r"p = [\d.]+e-(0[6-9]|[1-9]\d+)", "p < 1e-5", text)
    return re.sub(r"~[0-9a-f]{8}\b", "", text)


def _lines(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, 110, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
