"""What is seen in a picture, as its title says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transect.analysis.best import Best, best
from transect.analysis.groups import Group
from transect.analysis.labels import people_name
from transect.analysis.quality import TIME
from transect.report.engine.context import Context
from transect.report.engine.finding import names
from transect.report.engine.text import clean, number

# Leaders that a title names.
_MAX_NAMED = 3


def best_of(context: Context, groups: Sequence[Group[Any]], metric: str) -> Best | None:
    """Return who is best by the pairs of the study which decide this metric; None without any."""
    # Where each start takes as many steps in all ways, pairs of times to the target are decided by the step.
    decide = context.contrasts.of("training.fastest") if metric == TIME else context.contrasts
    ids = {id(group) for group in groups}
    between = [
        made for made in decide if id(made.group) in ids and id(made.base) in ids and metric in (TIME, made.metric)
    ]
    return best(between, list(groups)) if between else None


def who_is_first(found: Best | None, groups: Sequence[Group[Any]]) -> str:
    """Write who is best, and the nearest that is shown to be worse: `PyTorch leads; numpy takes 1.9 times as long`.

    Who may be as good is named as well. Empty where the pairs of the study do not show most of it.
    """
    if found is None or not found.excluded or len(found.unknown) > len(found.excluded):
        return ""
    long = " as long per step" if {made.metric for made in found.contrasts} == {"step_time"} else " as long"
    leading = list(dict.fromkeys(map(_name, (found.first, *found.tied))))
    perhaps = [name for name in dict.fromkeys(map(_name, found.unknown)) if name not in leading]
    named = [*leading, *perhaps]
    others = [entry for entry in found.excluded if _name(entry.group) not in named]
    if not others:
        # One name alone: what differs is how it ran.
        cells = [group.cell for group in groups]
        nearest = found.excluded[0]
        first, second = (clean(people_name(group.cell, cells)) for group in (found.first, nearest.group))
        return f"{first} is first; {second} takes {number(nearest.times.value)} times{long}"
    if len(named) > _MAX_NAMED:
        return ""
    told = " or ".join(filter(None, [", ".join(named[:-1]), named[-1]])) if perhaps else names(named)
    lead = "leads" if perhaps or len(named) == 1 else "lead"
    return f"{told} {lead}; {_name(others[0].group)} takes {number(others[0].times.value)} times{long}"


def _name(group: Group[Any]) -> str:
    return clean(people_name(group.cell, never=type(group.cell).model_fields))
