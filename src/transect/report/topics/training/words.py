"""The sentences on training: who is first, what more ranks bring, and what holds a step back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from transect.analysis.best import Best
from transect.analysis.bounds import Bound
from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group
from transect.analysis.labels import people_name, word
from transect.analysis.turns import STEP
from transect.domain.cell import Cell
from transect.domain.until import MARGIN
from transect.report.engine.best_words import confidence_of
from transect.report.engine.contrast_words import needs_words
from transect.report.engine.finding import names
from transect.report.engine.text import percent
from transect.report.topics.training.facts import PARTS
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Answer

# Of the longest part of a step from which on it alone holds a step back, and of a bound below which it is no bound's doing.
_MOST, _FAR = 0.5, 0.2
# What is said of a ratio of steps, beside times of whole trainings.
_PER_STEP = " per step"


def namer(groups: Sequence[Group]) -> Callable[[Cell], str]:
    """Return what names a cell among these in a sentence: with its cores, and what the others have not."""
    cells = [group.cell for group in groups]
    return lambda cell: people_name(cell, cells, always=("ranks",), never=("workload",))


def among(contrasts: Iterable[Contrast], groups: Sequence[Group]) -> list[Contrast]:
    """Return the contrasts of which both sides are among these groups."""
    known = {id(group) for group in groups}
    return [made for made in contrasts if {id(made.group), id(made.base)} <= known]


def first_words(found: Best, groups: Sequence[Group], value: str) -> str:
    """Say who is first with what, who takes longer, and who ties."""
    first, name = found.first.cell, namer(groups)
    # A start takes as many steps in all ways: then pairs are compared by the step, and the value is not what was compared.
    long = f"as long{_PER_STEP if {made.metric for made in found.contrasts} == {STEP} and not value.endswith(' a step') else ''}"
    # Another way to the same ranks of the same framework that ties with it is named with it.
    ways = [g for g in found.tied if (g.cell.framework, g.cell.ranks) == (first.framework, first.ranks)]
    also = [word("strategy", group.cell.strategy) for group in ways if group.cell.strategy != first.strategy]
    parts = [" or ".join([name(first), *also]) + f", {value}"]
    # One way of each framework says how much slower it is: its fastest.
    slower: dict[str, tuple[str, str]] = {}

    for entry in found.excluded:
        cell, times = entry.group.cell, about(entry.times.value)
        if cell.framework != first.framework:
            slower.setdefault(cell.framework, (_called(cell, first, name), times))
        elif cell.ranks == 1 < first.ranks and cell.strategy == "single" and len(parts) == 1:
            parts.append(f"one core takes {times} times {long}")
    later = [entry for entry in found.excluded if entry.group.cell.framework == first.framework]
    if later and later[0].group.cell.ranks > first.ranks:
        entry, second = later[0], later[0].group.cell.ranks == 2 and first.ranks == 1
        what = "a second core makes" if second else f"{entry.group.cell.ranks} processes make"
        parts.append(f"{what} it slower, {about(entry.times.value)} times {long}")
    if slower:
        (who, times), *others = slower.values()
        named = [f"{who} takes {times}", *(f"{other} {more}" for other, more in others)]
        parts.append(f"{names(named, 4)} times {long}")
    tied = [_called(group.cell, first, name) for group in found.tied if group not in ways]
    if tied:
        margin = next((made.comparison.margin for made in found.contrasts), MARGIN)
        parts.append(f"{names(tied, 3)} {'is' if len(tied) == 1 else 'are'} as fast within {percent(margin)}")
    return "; ".join(parts)


def unknown_namer(found: Best, groups: Sequence[Group]) -> Callable[[Group], str]:
    """Return what names those of whom it is not known whether they are as fast."""
    first, name = found.first.cell, namer(groups)
    # A framework of which one way is slower has others of which nothing is known.
    told = {_called(entry.group.cell, first, name) for entry in found.excluded}

    def of(group: Group) -> str:
        who = _called(group.cell, first, name)
        return name(group.cell) if who in told else who

    return of


def _called(cell: Cell, first: Cell, name: Callable[[Cell], str]) -> str:
    """Name a cell beside the first by what they do not share: its way, its framework, or both with its cores."""
    if cell.ranks != first.ranks:
        return name(cell)
    if cell.get("framework") != first.get("framework"):
        return word("framework", cell.get("framework"))
    return word("strategy", cell.get("strategy")) if cell.get("strategy") != first.get("strategy") else name(cell)


def said_confidence(found: Best) -> Confidence:
    """Return the confidence of what `first_words` says: other ways of its framework on its ranks are no part of it."""
    first = found.first.cell
    said = [e for e in found.excluded if (e.group.cell.framework, e.group.cell.ranks) != (first.framework, first.ranks)]
    return confidence_of(replace(found, excluded=tuple(said) or found.excluded))


def about(value: float) -> str:
    """Write a factor as one says it: `2.9`, `35`, and `1.15` where two digits would not tell it from a tie.

    >>> [about(x) for x in (2.873, 35.12, 1.147, 236.0)]
    ['2.9', '35', '1.15', '240']
    """
    digits = 3 if value < 2 else 2
    return f"{float(f'{value:.{digits}g}'):g}"


def more_words(way: Contrast) -> str:
    """Say what more ranks bring beside fewer: `a second core saves 21 % of the time`."""
    cell, base = way.group.cell, way.base.cell
    second = cell.ranks == 2 and base.ranks == 1 and cell.device == "cpu" and cell.nodes == 1
    what = "a second core" if second else people_name(cell, [base], always=("ranks",)).rpartition(" on ")[2]
    than = (_PER_STEP if way.metric == STEP else "") + ("" if base.ranks == 1 else f" beside {base.ranks}")
    if way.answer is Answer.SAME:
        return f"{what} {'saves' if second else 'save'} no time{than}: the same within {percent(way.comparison.margin)}"
    if not way.shown:
        return f"whether {what} {'saves' if second else 'save'} time{than} is not known{needs_words(way)}"
    if way.better is way.group:
        return f"{what} {'saves' if second else 'save'} {percent(way.saves.value)} of the time{than}"
    return f"{what} {'makes' if second else 'make'} it slower: {about(way.cost.value)} times as long{than}"


def limit_words(cell: Cell, shares: dict[str, float], bound: Bound | None, reached: float | None) -> str:
    """Say what holds a step back, as far as its parts and its bound tell."""
    part, share = max(shares.items(), key=lambda item: item[1], default=("", 0.0))
    told = len(shares) == len(PARTS)
    much = f"{PARTS[part]}, {percent(share)} of a step" if told else ""
    if reached is None or bound is None:
        return f"is held back by {much}"
    speed = "arithmetic speed" if bound.kind == "arithmetic" else bound.kind
    if reached > 1:
        return f"is {about(reached)} times as fast as the processor's {speed} allows: the bound or the count is off"
    could = f"the processor could do the step {about(1 / reached)} times as fast"
    if told and part != "compute" and share >= _MOST:
        return f"is held back by {much}; {could}"
    if reached < _FAR:
        what = f"{word('framework', cell.get('framework'))}'s overhead" if told else "more than the hardware"
        return f"is held back by {what}; {could}"
    return f"is held back by the hardware: a step runs at {percent(reached)} of the processor's {speed}"
