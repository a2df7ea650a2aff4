"""What a finding decides: who wins, by how much, and what was not compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transect.analysis.groups import Group, grouped
from transect.domain.record import Status
from transect.domain.until import MARGIN
from transect.report.engine.text import percent


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """Cells that took no part: what they are called, and why not."""

    what: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """One entry of the decision table: `column` is the key of a `DecisionColumn`,
    `scope` the condition under which it holds, `row` what it is about where that is not the finding's subject.

    `winner` is empty where nothing wins: `instead` then says why. `tied` names those that are shown to be the same within
    `margin`, and `unknown` those that may be as good.
    `gain` says by how much it wins, with its interval; `value` what it reaches.
    """

    column: str
    row: str = ""
    scope: str = ""
    winner: str = ""
    instead: str = ""
    tied: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    margin: float = MARGIN
    gain: str = ""
    value: str = ""
    left_out: tuple[LeftOut, ...] = ()

    @property
    def brief(self) -> str:
        """The entry as a clause."""
        if not self.winner:
            return self.instead
        every = [self.winner, *self.tied]
        best = ", ".join(filter(None, [self.winner, self.gain]))
        best = f"a tie within {percent(self.margin)}: {_named(every)}" if self.tied else best
        return "; ".join(filter(None, [best, self.doubt]))

    @property
    def doubt(self) -> str:
        """Say who may be as good; empty where that is known of all."""
        return (
            f"whether {_named(self.unknown)} {'is' if len(self.unknown) == 1 else 'are'} as good is not known"
            if self.unknown
            else ""
        )


def _named(every: Sequence[str]) -> str:
    named = every if len(every) < 5 else [*every[:3], f"{len(every) - 3} more"]
    return " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))


def why_not(group: Group) -> str:
    """Say why no repeat of a group can be used: `skipped: unsupported`; empty where one can, or a result is wrong."""
    if group.ok or group.wrong:
        return ""
    bad = [record for record in group.records if record.status is not Status.OK]
    causes = grouped(bad, lambda r: f"{r.status.value}{f': {r.cause.value}' if r.cause else ''}")
    return ", ".join(causes) or "no usable record"
