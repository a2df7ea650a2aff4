"""What lines of a comparison mean together: speed at its quality, and chance among many lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from transect.analysis.groups import Group, grouped
from transect.analysis.result_sets import Pair
from transect.analysis.set_lines import Line, Outcome, Shift
from transect.analysis.set_metrics import Chosen, Role
from transect.stats.comparisons import Confidence
from transect.stats.noise import middle
from transect.stats.verdicts import LEVEL, corrected, decide_paired

# Cells that have to be in both sets before all of them together say anything.
_MIN_CELLS = 3
# Times until a quality is reached: they are never at another one.
_AT_QUALITY = frozenset({"time_to_quality", "steps_to_quality"})


def levelled(lines: Iterable[Line]) -> list[Line]:
    """Return the lines of one set, none better in speed whose cell is worse in quality.

    Where the quality is open, what is faster is provisional at most.
    """
    every = list(lines)
    by_cell = grouped(every, lambda line: line.cell)
    return [_at_quality(line, by_cell[line.cell]) for line in every]


def _at_quality(line: Line, of_cell: Sequence[Line]) -> Line:
    if line.role is not Role.SPEED or line.outcome is not Outcome.BETTER:
        return line
    quality = [each for each in of_cell if each.role is Role.QUALITY]
    ended = [each for each in of_cell if each.role is Role.OUTCOME]
    worse = [each for each in quality if each.outcome is Outcome.WORSE]
    if worse or any(each.outcome is Outcome.WORSE for each in ended):
        names = ", ".join(each.metric for each in worse) or "repeats that failed"
        return replace(
            line,
            outcome=Outcome.NOT_COMPARABLE,
            reason=f"faster at worse quality ({names}) is not better; {line.reason}",
        )
    unknown = [each.metric for each in quality if each.outcome in (Outcome.OPEN, Outcome.NOT_COMPARABLE)]
    if unknown and line.metric not in _AT_QUALITY and line.confidence is Confidence.CONFIRMED:
        reason = f"{line.reason}; whether at the same quality ({', '.join(unknown)}) is open"
        return replace(line, confidence=Confidence.PROVISIONAL, reason=reason)
    return line


def held(sets: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the lines of all sets, none confirmed that may be chance among so many comparisons."""
    decided = [
        line.comparison.decision
        for lines in sets
        for line in lines
        if line.comparison is not None and line.comparison.decision is not None
    ]
    p = iter(corrected(decided, [1.0] * len(decided)))
    return [[_held(line, p, len(decided)) for line in lines] for lines in sets]


def _held(line: Line, p: Iterator[float], many: int) -> Line:
    if line.comparison is None or line.comparison.decision is None:
        return line
    corrected_p = next(p)
    if line.confidence is not Confidence.CONFIRMED or corrected_p <= LEVEL or line.outcome is Outcome.NOT_COMPARABLE:
        return line
    reason = f"{line.reason}; as one of {many} comparisons p = {corrected_p:.2g} (Holm), which may be chance"
    return replace(line, confidence=Confidence.PROVISIONAL, reason=reason)


def shifts(pairs: Sequence[Pair], asked: Mapping[str, Sequence[Chosen]], margin: float) -> Iterator[Shift]:
    """Yield by how much all cells of a stage moved together, metric by metric.

    Judged by how unlike the cells moved, whatever the noise of each: what all share is then a matter of
    the machine, or of what they are all made with.
    """
    for stage, members in grouped(pairs, lambda pair: pair.base.cell.stage).items():
        for choice in asked.get(stage, ()):
            if choice.role is not Role.SPEED or choice.label is not None:
                continue
            both = [
                (new, old)
                for pair in members
                if not (pair.base.over_subscribed or pair.other.over_subscribed)
                and (new := _middle(pair.other, choice.metric)) is not None
                and (old := _middle(pair.base, choice.metric)) is not None
            ]
            if len(both) < _MIN_CELLS:
                continue
            decision = decide_paired(
                {n: new for n, (new, _) in enumerate(both)},
                {n: old for n, (_, old) in enumerate(both)},
                None,
                margin=margin,
            )
            if decision is not None:
                name, direction = choice.metric, choice.direction
                yield Shift(stage=stage, metric=name, cells=len(both), direction=direction, decision=decision)


def _middle(group: Group, name: str) -> float | None:
    values = [value for value in group.values(name) if value > 0]
    return middle(values) if values else None
