"""Better, worse, the same, open or not comparable: the cells of result sets beside those of a base.

The verdicts are those of `transect.stats.comparisons`, with the noise of the noisier side and
Holm's correction over everything that is compared. What is faster at worse quality is not better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from transect.analysis.groups import Group, grouped
from transect.analysis.log_runs import LogCell
from transect.analysis.result_sets import Pair, ResultSet, differences_of, pair_up, without_old_logs
from transect.analysis.sample_runs import DOUBT
from transect.analysis.set_lines import Beside, Line, Outcome, Shift
from transect.analysis.set_metrics import Chosen, Role, chosen
from transect.analysis.settings import settings_doubt
from transect.domain.metrics import Direction
from transect.domain.record import Status
from transect.domain.until import MARGIN, MIN_RUNS
from transect.stats.comparisons import Comparison, Confidence, Verdict, compare, compare_paired
from transect.stats.noise import middle
from transect.stats.samples import NoiseFloor
from transect.stats.verdicts import LEVEL, corrected, decide_paired

# Accuracies within a hundredth of each other are the same.
QUALITY_MARGIN = 0.01
# From so many runs of logs a side on, no usable one among them is more than chance.
_MANY = 3
# Cells that have to be in both sets before all of them together say anything.
_MIN_CELLS = 3
# Times until a quality is reached: they are never at another one.
_AT_QUALITY = frozenset({"time_to_quality", "steps_to_quality"})


def compare_sets(
    base: ResultSet,
    others: Sequence[ResultSet],
    *,
    margin: float = MARGIN,
    quality_margin: float = QUALITY_MARGIN,
    metrics: Sequence[str] = (),
) -> list[Beside]:
    """Compare the cells of each other set with the base's. `metrics`: none for the stages' own.

    Raises BadInput for a metric that no record has.
    """
    margins = {Role.SPEED: margin, Role.QUALITY: quality_margin}
    others = [without_old_logs(base, other) for other in others]
    pairings = [pair_up(base, other) for other in others]
    asked = chosen((base, *others), metrics)
    made = held(
        [
            levelled(line for pair in pairing.pairs for line in _lines(pair, asked, (base, other), margins))
            for other, pairing in zip(others, pairings, strict=True)
        ]
    )
    return [
        Beside(
            other=other,
            pairing=pairing,
            lines=lines,
            shifts=list(shifts(pairing.pairs, asked, margin)),
            differences=differences_of(base, other, ((pair.base, pair.other) for pair in pairing.pairs)),
        )
        for other, pairing, lines in zip(others, pairings, made, strict=True)
    ]


def _floor(
    sides: tuple[ResultSet, ResultSet], pair: Pair, choice: Chosen, margin: float, *, paired: bool = False
) -> NoiseFloor | None:
    """Return the noise floor of two sets: that of the noisier one."""
    cell, kind = pair.base.cell, pair.base.kind
    found = []
    for floors in (side.floors(margin) for side in sides):
        if choice.label is not None:
            found.append(floors.labelled(cell.stage, choice.metric, choice.label))
        else:
            get = floors.paired if paired else floors.get
            found.append(get(cell.stage, cell.workload, choice.metric, kind))
    return max((floor for floor in found if floor), key=lambda floor: floor.relative, default=None)


def _lines(
    pair: Pair, asked: Mapping[str, Sequence[Chosen]], sides: tuple[ResultSet, ResultSet], margins: Mapping[Role, float]
) -> Iterator[Line]:
    """Yield how a pair's cells ended, where that is not alike, then their metrics."""
    ended = _ended(pair)
    if ended is not None:
        yield ended
    if not (pair.base.ok and pair.other.ok) or (ended and ended.outcome is Outcome.NOT_COMPARABLE):
        return
    for choice in asked.get(pair.base.cell.stage, ()):
        line = _line(pair, choice, sides, margins[choice.role])
        if line is not None:
            yield line


def _ended(pair: Pair) -> Line | None:
    """Say what differs in how the cells of a pair ended, or why that is nothing to compare."""
    base, other = pair.base, pair.other
    reason = ""
    if base.over_subscribed or other.over_subscribed:
        reason = "more ranks than cores"
    elif not base.ok and not other.ok:
        reason = f"no usable result on either side: {_how(base)}, and {_how(other)}"
    for side, group in (("the other", other), ("the base", base)):
        if all(record.status is Status.SKIPPED for record in group.records):
            reason = reason or f"{side}: {_how(group)}"
    if reason:
        return _ending(pair, Outcome.NOT_COMPARABLE, reason)
    for gone, left, outcome in ((other, base, Outcome.WORSE), (base, other, Outcome.BETTER)):
        if _failing(gone) <= _failing(left):
            continue
        sides = ["the other", "the base"] if gone is other else ["the base", "the other"]
        reason = "; ".join(
            f"{side}: {_how(group)}" for side, group in zip(sides, (gone, left), strict=True) if _failing(group)
        )
        confirmed = not _failing(left) and (not gone.ok or gone.wrong)
        if isinstance(pair.base.cell, LogCell):
            # Runs of many jobs: a single failure says nothing about the others.
            confirmed = confirmed and not gone.ok and min(len(gone.records), len(left.records)) >= _MANY
        return _ending(pair, outcome, reason, Confidence.CONFIRMED if confirmed else Confidence.PROVISIONAL)
    return None


def _failing(group: Group) -> float:
    """Return the share of a group's repeats that failed, or gave a wrong result, of those that ran."""
    ran = [record for record in group.records if record.status is not Status.SKIPPED]
    return 1 - len(group.ok) / len(ran) if ran else 0.0


def _ending(pair: Pair, outcome: Outcome, reason: str, confidence: Confidence = Confidence.CONFIRMED) -> Line:
    return Line(cell=pair.base.cell, role=Role.OUTCOME, outcome=outcome, confidence=confidence, reason=reason)


def _how(group: Group) -> str:
    bad = [record for record in group.records if record not in group.ok]
    causes = Counter(str(record.cause or "wrong-result") for record in bad)
    counted = ", ".join(f"{amount} {cause}" for cause, amount in sorted(causes.items()))
    status = "skipped" if all(r.status is Status.SKIPPED for r in bad) else "failed"
    return f"{len(bad)} of {len(group.records)} repeats {status} ({counted})"


def _line(pair: Pair, choice: Chosen, sides: tuple[ResultSet, ResultSet], margin: float) -> Line | None:
    mine, theirs = (group.counted(choice.metric, choice.label) for group in (pair.other, pair.base))
    if not mine and not theirs:
        return None
    why = ""
    if not mine or not theirs:
        why = f"{'the other' if theirs else 'the base'} has none"
    elif choice.units > 1:
        why = "its unit or direction is not the same in both"
    elif (choice.unit == "s" or choice.unit.endswith("/s")) and min(*mine, *theirs) <= 0:
        why = f"{'the other' if min(mine) <= 0 else 'the base'}: no time or rate is zero or less"
    if why:
        return _made(pair, choice, Outcome.NOT_COMPARABLE, why)
    comparison = None
    if choice.seeded:
        floor = _floor(sides, pair, choice, margin, paired=True)
        both = pair.other, pair.base
        # Others at work on the machine change no quality.
        quiet = [group.by_repeat(choice.metric, quiet=choice.role is Role.SPEED) for group in both]
        enough = len(quiet[0].keys() & quiet[1].keys()) >= MIN_RUNS
        repeats = quiet if enough else [group.by_repeat(choice.metric) for group in both]
        comparison = compare_paired(*repeats, direction=choice.direction, floor=floor)
    if comparison is None:
        # Without a common repeat, what seeds do is a part of the noise.
        floor = _floor(sides, pair, choice, margin)
        comparison = compare(mine, theirs, direction=choice.direction, floor=floor)
    if comparison is None:
        return None
    if choice.fact and len({*mine}) == 1 and len({*theirs}) == 1:
        return _of_facts(pair, choice, comparison, margin)
    outcome = {Verdict.BETTER: Outcome.BETTER, Verdict.WORSE: Outcome.WORSE}.get(
        comparison.verdict, Outcome.SAME if comparison.equal else Outcome.OPEN
    )
    confidence, reason = comparison.confidence, comparison.reason
    if confidence is Confidence.CONFIRMED and (doubt := _doubt(outcome, pair)):
        confidence, reason = Confidence.PROVISIONAL, f"{reason}; {doubt}"
    return _made(pair, choice, outcome, reason, confidence, comparison)


def _doubt(outcome: Outcome, pair: Pair) -> str:
    """Say why the verdict on a pair is not confirmed, or nothing.

    That a training is better, or the same, is not where its steps cannot be held to its reference's: it may do
    something else. That it is worse needs no such proof.
    """
    groups = (pair.base, pair.other)
    if any(group.noisy for group in groups):
        return "others were at work on the machine"
    if doubt := settings_doubt(*groups):
        return doubt
    if doubt := next((record.details[DOUBT] for group in groups for record in group.ok if DOUBT in record.details), ""):
        return str(doubt)
    unproven = any(g.check_inconclusive_from is not None or g.no_reference is not None for g in groups)
    return "a training's steps cannot be held to its reference's" if unproven and outcome is not Outcome.WORSE else ""


def _of_facts(pair: Pair, choice: Chosen, comparison: Comparison, margin: float) -> Line:
    """Compare what has no noise: all repeats of a side say one number."""
    mine, theirs = comparison.a.median, comparison.b.median
    low, high = sorted((mine, theirs))
    apart = "" if low <= 0 else f", {100 * (high / low - 1):.2g} % apart"
    outcome, reason = Outcome.SAME, "the same number, which has no noise"
    if mine != theirs:
        reason = f"a number without noise{apart}"
        if low > 0 and high / low - 1 <= margin:
            reason = f"{reason}: within {100 * margin:g} %"
        else:
            outcome = Outcome.BETTER if (mine < theirs) == (choice.direction is Direction.LOWER) else Outcome.WORSE
    comparison = replace(comparison, decision=None, confidence=Confidence.CONFIRMED)
    return _made(pair, choice, outcome, reason, comparison=comparison)


def _made(
    pair: Pair,
    choice: Chosen,
    outcome: Outcome,
    reason: str,
    confidence: Confidence = Confidence.CONFIRMED,
    comparison: Comparison | None = None,
) -> Line:
    return Line(
        cell=pair.base.cell,
        role=choice.role,
        outcome=outcome,
        confidence=confidence,
        reason=reason,
        metric=choice.metric,
        what=choice.label or "",
        unit=choice.unit,
        direction=choice.direction,
        comparison=comparison,
        fact=choice.fact,
    )


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
    decided = {id(line): found for lines in sets for line in lines if (found := line.decision) is not None}
    p_of = dict(zip(decided, corrected([*decided.values()], [1.0] * len(decided)), strict=True))

    def beside_others(line: Line) -> Line:
        p = p_of.get(id(line), 0.0)
        if line.confidence is not Confidence.CONFIRMED or p <= LEVEL or line.outcome is Outcome.NOT_COMPARABLE:
            return line
        reason = f"{line.reason}; as one of {len(decided)} comparisons p = {p:.2g} (Holm), which may be chance"
        return replace(line, confidence=Confidence.PROVISIONAL, reason=reason)

    return [[beside_others(line) for line in lines] for lines in sets]


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
    values = [value for value in group.counted(name) if value > 0]
    return middle(values) if values else None
