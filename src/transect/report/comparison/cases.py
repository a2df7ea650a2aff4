"""A comparison as test cases: what is worse fails, what nobody knows is skipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.set_lines import Beside, Line, Outcome, counts_as_worse, is_confirmed, shifted_worse
from transect.report.comparison.compare_page import Compared
from transect.report.comparison.words import (
    change_text,
    lone_text,
    metric_name,
    refused_text,
    shift_text,
    summary_text,
    why_text,
)
from transect.report.junit import Case, Ended

_UNKNOWN = (Outcome.OPEN, Outcome.NOT_COMPARABLE)
_COPIED = "the same measurement on both sides"


def comparison_cases(compared: Compared, *, provisional: bool) -> list[tuple[str, Sequence[Case]]]:
    """Return a suite for each set beside the base. As many fail as make the exit code that of something worse.

    What is worse without being confirmed is skipped with its numbers, unless it counts (`provisional`).
    """
    return [
        (f"{beside.other.name} beside {compared.base.name}", list(_cases(compared, beside, provisional)))
        for beside in compared.besides
    ]


def _cases(compared: Compared, beside: Beside, provisional: bool) -> Iterator[Case]:
    letter, pairing = beside.other.letter, beside.pairing
    # One folder may be beside the base under several names: the letter keeps its cases apart.
    group = f"{letter} beside A"
    nothing = True
    for line in beside.lines:
        nothing = False
        yield _of_line(compared, line, letter, group, provisional=provisional)
    for shift in filter(shifted_worse, beside.shifts):
        yield Case(
            group=f"{group}.{shift.stage}",
            name=f"all {shift.cells} cells together: {metric_name(shift.metric)}",
            ended=Ended.FAILED if provisional else Ended.SKIPPED,
            kind="worse as a whole",
            said=shift_text(shift, letter),
        )
    left = [(refused.pair.base.cell, refused_text(refused, letter)) for refused in pairing.refused]
    for side, lone in (("A", pairing.only_base), (letter, pairing.only_other)):
        left += [(one.group.cell, f"only in {side}: {lone_text(one)}") for one in lone]
    left += [(pair.base.cell, _COPIED) for pair in pairing.copied]
    for cell, why in left:
        nothing = False
        name = compared.short_name(cell)
        yield Case(group=f"{group}.{cell.stage}", name=name, ended=Ended.SKIPPED, kind="not compared", said=why)
    if nothing:
        # A reader takes a report without any case for a fault.
        yield Case(group=group, name="comparison", ended=Ended.SKIPPED, kind="not compared", said="nothing to compare")


def _of_line(compared: Compared, line: Line, letter: str, group: str, *, provisional: bool) -> Case:
    loose = line.outcome is Outcome.WORSE and not is_confirmed(line)
    ended = Ended.SKIPPED if line.outcome in _UNKNOWN or loose else Ended.PASSED
    if counts_as_worse(line, provisional=provisional):
        ended = Ended.FAILED
    verdict = line.outcome.value if is_confirmed(line) or line.outcome in _UNKNOWN else f"provisionally {line.outcome}"
    values = ""
    if line.comparison is not None:
        sides = f"A {summary_text(line, base=True)}, {letter} {summary_text(line, base=False)}"
        values = f" {change_text(line)}: {sides}"
    return Case(
        group=f"{group}.{line.cell.stage}",
        name=f"{compared.short_name(line.cell)}: {metric_name(line.metric, line.what) or 'how it ended'}",
        ended=ended,
        kind=verdict,
        said=f"{verdict}{values}; {why_text(line)}",
    )
