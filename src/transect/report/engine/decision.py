"""What a finding decides: who wins, by how much, at what quality, what limits it, and what was not compared."""

from __future__ import annotations

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

    `winner` is empty where nothing wins: `instead` then says why. `tied` names those that are not shown
    to be worse: `equal` ones are shown to be the same within `margin`, others cannot be told apart.
    `gain` says by how much it wins, with its interval; `value` what it reaches; `second` who is next.
    """

    column: str
    row: str = ""
    scope: str = ""
    winner: str = ""
    instead: str = ""
    tied: tuple[str, ...] = ()
    equal: bool = False
    margin: float = MARGIN
    gain: str = ""
    value: str = ""
    quality: str = ""
    limit: str = ""
    second: str = ""
    left_out: tuple[LeftOut, ...] = ()

    @property
    def tie(self) -> str:
        """Say that several win, as far as can be told; empty where one does."""
        if not self.tied:
            return ""
        if self.equal:
            return f"a tie within {percent(self.margin)}"
        return "too close to tell"

    @property
    def brief(self) -> str:
        """The entry as a clause."""
        if not self.winner:
            return self.instead
        if self.tied:
            every = [self.winner, *self.tied]
            named = every if len(every) < 5 else [*every[:3], f"{len(every) - 3} more"]
            return f"{self.tie}: {', '.join(named[:-1])} and {named[-1]}"
        return f"{self.winner}, {self.gain}" if self.gain else self.winner


def why_not(group: Group) -> str:
    """Say why no repeat of a group can be used: `skipped: unsupported`; empty where one can, or a result is wrong."""
    if group.ok or group.wrong:
        return ""
    bad = [record for record in group.records if record.status is not Status.OK]
    causes = grouped(bad, lambda r: f"{r.status.value}{f': {r.cause.value}' if r.cause else ''}")
    return ", ".join(causes) or "no usable record"
