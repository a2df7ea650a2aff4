"""Cells that did not end well, grouped by their cause and by their message."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import grouped
from transect.domain.record import Cause, Status

# The id of a cell. Looks back, so that a long word is gone through once.
CELL = re.compile(r"(?<![\w.+:-])[\w.+:-]+~[0-9a-f]{8}")
# What differs between messages that say the same: ids, addresses, paths, numbers.
_OWN = (
    (CELL, "CELL"),
    (re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{12,}\b"), "HEX"),
    (re.compile(r"(?:/[\w.+~@-]+){2,}/?"), "PATH"),
    (re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"), "N"),
)
# More characters are not needed to distinguish messages.
_MAX_LENGTH = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class SameMessage:
    """Cells whose messages differ in names and numbers only; `message` is that of the first."""

    message: str
    records: Sequence[AnyRecord]

    @property
    def stages(self) -> list[str]:
        """The stages of the cells, sorted."""
        return sorted({record.stage for record in self.records})


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """Cells that ended with one status and cause.

    `messages` are their messages, the most frequent first. `followers` counts the cells that were
    skipped because one of these did not deliver, directly or through others.
    """

    status: Status
    cause: Cause
    messages: Sequence[SameMessage]
    followers: int

    @property
    def records(self) -> list[AnyRecord]:
        """All cells, in the order of `messages`."""
        return [record for message in self.messages for record in message.records]


def endings(records: Iterable[AnyRecord]) -> list[Ending]:
    """Group the records that are not ok: failures first, then by how many cells each blocks or has."""
    bad = [record for record in records if record.status is not Status.OK and record.cause]
    roots = _roots(bad)
    found = [
        Ending(
            status=status, cause=cause, messages=_messages(members), followers=sum(roots[r.cell_id] for r in members)
        )
        for (status, cause), members in grouped(bad, lambda r: (r.status, r.cause or Cause.CRASH)).items()
    ]
    return sorted(
        found, key=lambda end: (end.status is Status.SKIPPED, -end.followers - len(end.records), end.cause.value)
    )


def _roots(bad: Sequence[AnyRecord]) -> Counter[str]:
    """Count, by the id of a cell, the cells that say that it is why they did not run.

    A message names the cell that it takes something from, and quotes why that one did not deliver: the
    last of the names that did not end well is where it began.
    """
    ids = {record.cell_id for record in bad}
    roots: Counter[str] = Counter()
    for record in bad:
        if record.cause is Cause.MISSING_DEPENDENCY:
            named = [name for name in CELL.findall(record.message) if name in ids]
            if named and named[-1] != record.cell_id:
                roots[named[-1]] += 1
    return roots


def _messages(records: Sequence[AnyRecord]) -> list[SameMessage]:
    # Most messages are alike to the letter: the shape of each is made once.
    shapes = {message: _shape(message) for message in {record.message for record in records}}
    messages = [
        SameMessage(message=members[0].message, records=sorted(members, key=lambda r: (r.stage, r.cell_id)))
        for members in grouped(records, lambda record: shapes[record.message]).values()
    ]
    return sorted(messages, key=lambda message: (-len(message.records), message.stages, message.message))


def _shape(message: str) -> str:
    """Return a message without what differs from cell to cell.

    >>> _shape("it takes its data from iris~01234567, which died at 0x7ffe after 3.5 s")
    'it takes its data from CELL, which died at HEX after N s'
    """
    text = message[: 10 * _MAX_LENGTH]
    for pattern, word in _OWN:
        text = pattern.sub(word, text)
    return " ".join(text.split())[:_MAX_LENGTH]
