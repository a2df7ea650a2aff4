"""Better, worse, the same, open or not comparable: the cells of result sets beside those of a base.

The verdicts are those of `transect.stats.comparisons`, with the noise of the noisier side and
Holm's correction over everything that is compared. What is faster at worse quality is not better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from transect.analysis.groups import Group
from transect.analysis.log_runs import SETTINGS_UNKNOWN, LogCell, settings_unknown
from transect.analysis.result_sets import Pair, Pairing, ResultSet, pair_up, without_old_logs
from transect.analysis.set_families import held, levelled, shifts
from transect.analysis.set_lines import Beside, Line, Outcome
from transect.analysis.set_metrics import Chosen, Role, chosen
from transect.analysis.settings import PARTLY_KNOWN, settings_partly_known
from transect.analysis.side_by_side import under
from transect.analysis.surroundings import Difference, differences, facts_of
from transect.domain.metrics import Direction
from transect.domain.record import Status
from transect.domain.until import MARGIN
from transect.stats.comparisons import Comparison, Confidence, Verdict, compare, compare_paired
from transect.stats.samples import NoiseFloor, noise_floor

# Accuracies within a hundredth of each other are the same.
QUALITY_MARGIN = 0.01
# From so many runs of logs a side on, no usable one among them is more than chance.
_MANY = 3


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
    made: list[list[Line]] = []
    for other, pairing in zip(others, pairings, strict=True):
        noise = _Noise(base, other, margins)
        made.append([line for pair in pairing.pairs for line in _lines(pair, asked, noise)])
    made = held([levelled(lines) for lines in made])
    return [
        Beside(
            other=other,
            pairing=pairing,
            lines=lines,
            shifts=list(shifts(pairing.pairs, asked, margin)),
            differences=_differences(base, other, pairing),
        )
        for other, pairing, lines in zip(others, pairings, made, strict=True)
    ]


def _differences(base: ResultSet, other: ResultSet, pairing: Pairing) -> list[Difference]:
    """Name what differs between the records that are compared; between all of them, where none are."""
    if not pairing.pairs:
        return differences(base.facts, other.facts)
    sides = zip(*((pair.base.records, pair.other.records) for pair in pairing.pairs), strict=True)
    return differences(*(facts_of(record for records in side for record in records) for side in sides))


class _Noise:
    """The noise floor of two sets: that of the noisier one."""

    def __init__(self, base: ResultSet, other: ResultSet, margins: Mapping[Role, float]) -> None:
        self._sides = base, other
        self._margins = margins
        self._labelled: dict[tuple[int, str, Chosen], NoiseFloor | None] = {}

    def margin(self, choice: Chosen) -> float:
        """Within which two values are the same."""
        return self._margins[choice.role]

    def of(self, pair: Pair, choice: Chosen, *, paired: bool) -> NoiseFloor | None:
        cell, margin = pair.base.cell, self._margins[choice.role]
        known = []
        for side in self._sides:
            floors = side.floors(margin)
            if choice.label is not None:
                floor = self._of_label(side, cell.stage, choice, margin)
            elif paired:
                floor = floors.paired(cell.stage, cell.workload, choice.metric, pair.base.kind)
            else:
                floor = floors.get(cell.stage, cell.workload, choice.metric, pair.base.kind)
            known.append(floor)
        measured = [floor for floor in known if floor is not None]
        return max(measured, key=lambda floor: floor.relative, default=None)

    def _of_label(self, side: ResultSet, stage: str, choice: Chosen, margin: float) -> NoiseFloor | None:
        key = id(side), stage, choice
        if key not in self._labelled:
            groups = [g for g in side.groups.values() if g.cell.stage == stage and not g.over_subscribed]
            # As `Floors` has it: disturbed runs only where no cell has two others.
            floors = (
                noise_floor(
                    (list(g.by_repeat(choice.metric, choice.label, quiet=quiet).values()) for g in groups),
                    margin=margin,
                )
                for quiet in (True, False)
            )
            self._labelled[key] = next((floor for floor in floors if floor is not None), None)
        return self._labelled[key]


def _lines(pair: Pair, asked: Mapping[str, Sequence[Chosen]], noise: _Noise) -> Iterator[Line]:
    """Yield how a pair's cells ended, where that is not alike, then their metrics."""
    ended = _ended(pair)
    if ended is not None:
        yield ended
    if not (pair.base.ok and pair.other.ok) or (ended and ended.outcome is Outcome.NOT_COMPARABLE):
        return
    for choice in asked.get(pair.base.cell.stage, ()):
        line = _line(pair, choice, noise)
        if line is not None:
            yield line


def _ended(pair: Pair) -> Line | None:
    """Say what differs in how the cells of a pair ended, or why that is nothing to compare."""
    base, other = pair.base, pair.other
    if base.over_subscribed or other.over_subscribed:
        return _ending(pair, Outcome.NOT_COMPARABLE, Confidence.CONFIRMED, "more ranks than cores")
    if not base.ok and not other.ok:
        reason = f"no usable result on either side: {_how(base)}, and {_how(other)}"
        return _ending(pair, Outcome.NOT_COMPARABLE, Confidence.CONFIRMED, reason)
    for side, group in (("the other", other), ("the base", base)):
        if all(record.status is Status.SKIPPED for record in group.records):
            reason = f"{side}: {_how(group)}"
            return _ending(pair, Outcome.NOT_COMPARABLE, Confidence.CONFIRMED, reason)
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
        return _ending(pair, outcome, Confidence.CONFIRMED if confirmed else Confidence.PROVISIONAL, reason)
    return None


def _failing(group: Group) -> float:
    """Return the share of a group's repeats that failed, or gave a wrong result, of those that ran."""
    ran = [record for record in group.records if record.status is not Status.SKIPPED]
    return 1 - len(group.ok) / len(ran) if ran else 0.0


def _ending(pair: Pair, outcome: Outcome, confidence: Confidence, reason: str) -> Line:
    return Line(cell=pair.base.cell, role=Role.OUTCOME, outcome=outcome, confidence=confidence, reason=reason)


def _how(group: Group) -> str:
    bad = [record for record in group.records if record not in group.ok]
    causes = Counter(str(record.cause or "wrong-result") for record in bad)
    counted = ", ".join(f"{amount} {cause}" for cause, amount in sorted(causes.items()))
    status = "skipped" if all(r.status is Status.SKIPPED for r in bad) else "failed"
    return f"{len(bad)} of {len(group.records)} repeats {status} ({counted})"


def _line(pair: Pair, choice: Chosen, noise: _Noise) -> Line | None:
    mine, theirs = (group.counted(choice.metric, choice.label) for group in (pair.other, pair.base))
    if not mine or not theirs:
        if not mine and not theirs:
            return None
        side = "the other" if theirs else "the base"
        return _made(pair, choice, Outcome.NOT_COMPARABLE, Confidence.CONFIRMED, f"{side} has none")
    if choice.units > 1:
        return _made(
            pair, choice, Outcome.NOT_COMPARABLE, Confidence.CONFIRMED, "its unit or direction is not the same in both"
        )
    if (choice.unit == "s" or choice.unit.endswith("/s")) and min(*mine, *theirs) <= 0:
        side = "the other" if min(mine) <= 0 else "the base"
        reason = f"{side}: no time or rate is zero or less"
        return _made(pair, choice, Outcome.NOT_COMPARABLE, Confidence.CONFIRMED, reason)
    comparison = None
    if choice.seeded:
        comparison = compare_paired(
            pair.other.by_repeat(choice.metric),
            pair.base.by_repeat(choice.metric),
            direction=choice.direction,
            floor=noise.of(pair, choice, paired=True),
        )
    if comparison is None:
        # Without a common repeat, what seeds do is a part of the noise.
        floor = noise.of(pair, choice, paired=False)
        comparison = compare(mine, theirs, direction=choice.direction, floor=floor)
    if comparison is None:
        return None
    before, comparison = comparison, under(comparison, pair.other, pair.base, together=False)
    disturbed = comparison is not before
    if choice.fact and len({*mine}) == 1 and len({*theirs}) == 1:
        return _of_facts(pair, choice, comparison, noise.margin(choice))
    outcome = {Verdict.BETTER: Outcome.BETTER, Verdict.WORSE: Outcome.WORSE}.get(
        comparison.verdict, Outcome.SAME if comparison.equal else Outcome.OPEN
    )
    if outcome is Outcome.OPEN:
        return _made(pair, choice, outcome, Confidence.INCONCLUSIVE, comparison.reason, comparison)
    return _made(pair, choice, outcome, *_confidence_of(comparison, outcome, pair, disturbed), comparison)


def _confidence_of(comparison: Comparison, outcome: Outcome, pair: Pair, disturbed: bool) -> tuple[Confidence, str]:
    """Return the confidence of a verdict and why.

    That a training is better, or the same, is not confirmed where its steps cannot be held to its reference's: it
    may do something else. That it is worse needs no such proof.
    """
    if comparison.confidence is Confidence.CONFIRMED and settings_partly_known(pair.base, pair.other):
        return Confidence.PROVISIONAL, f"{comparison.reason}; {PARTLY_KNOWN}"
    if disturbed:
        return comparison.confidence, f"{comparison.reason}; others were at work on the machine"
    if settings_unknown(pair.base.cell) and comparison.confidence is Confidence.CONFIRMED:
        return Confidence.PROVISIONAL, f"{comparison.reason}; {SETTINGS_UNKNOWN}"
    unproven = any(g.check_inconclusive_from is not None or g.no_reference is not None for g in (pair.base, pair.other))
    if not unproven or comparison.confidence is not Confidence.CONFIRMED or outcome is Outcome.WORSE:
        return comparison.confidence, comparison.reason
    return (Confidence.PROVISIONAL, f"{comparison.reason}; a training's steps cannot be held to its reference's")


def _of_facts(pair: Pair, choice: Chosen, comparison: Comparison, margin: float) -> Line:
    """Compare what has no noise: all repeats of a side say one number."""
    mine, theirs = comparison.a.median, comparison.b.median
    comparison = replace(comparison, decision=None, confidence=Confidence.CONFIRMED)
    if mine == theirs:
        return _made(
            pair, choice, Outcome.SAME, Confidence.CONFIRMED, "the same number, which has no noise", comparison
        )
    low, high = sorted((mine, theirs))
    apart = "" if low <= 0 else f", {100 * (high / low - 1):.2g} % apart"
    if low > 0 and high / low - 1 <= margin:
        reason = f"a number without noise{apart}: within {100 * margin:g} %"
        return _made(pair, choice, Outcome.SAME, Confidence.CONFIRMED, reason, comparison)
    better = (mine < theirs) == (choice.direction is Direction.LOWER)
    outcome = Outcome.BETTER if better else Outcome.WORSE
    return _made(pair, choice, outcome, Confidence.CONFIRMED, f"a number without noise{apart}", comparison)


def _made(
    pair: Pair,
    choice: Chosen,
    outcome: Outcome,
    confidence: Confidence,
    reason: str,
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
