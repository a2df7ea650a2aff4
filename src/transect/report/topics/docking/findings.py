"""Findings on the docking kernel: who is fastest, how OpenMP scales, and what was published of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transect.analysis.groups import Group
from transect.analysis.labels import group_labels
from transect.domain.until import MARGIN
from transect.report.engine.context import Context
from transect.report.engine.deciding import same_within
from transect.report.engine.decision import Decision, LeftOut, gain_text, tie_text, why_not
from transect.report.engine.finding import Finding, joined, lowest_confidence, names
from transect.report.engine.text import clean, count, ends, factor, percent, quantity
from transect.report.topics.docking.facts import (
    Contest,
    Contestant,
    Curve,
    contests,
    curves,
    docking_rows,
    without_result,
)
from transect.stats.comparisons import Comparison, Confidence, Verdict
from transect.stats.noise import middle

# The column of the decision table.
COLUMN = "dock"

# Of linear: less is called so.
_NEAR_LINEAR = 0.9
ASSESSMENT = "HPC assessment (GWDG SCC)"
_PUBLISHED_CORES = 16
_PUBLISHED_CUDA = 10e12
_PUBLISHED_JULIA = 7.0


def docking_contests(context: Context) -> list[Contest]:
    """Return the contests of a study, with the noise floor of their metric."""
    floor = context.floors.get("bench", None, "pose_time")
    return contests(docking_rows(context.of("bench")), floor)


def contest_title(contest: Contest) -> str:
    """Name what the rows of a contest share."""
    return clean(f"{contest.deck}, {count(contest.poses, 'pose')}, {count(contest.threads, 'thread')}")


def docking_findings(context: Context) -> list[Finding]:
    """Return the fastest of each contest, the scaling of OpenMP, and what decides each claim."""
    found = docking_contests(context)
    if not found:
        return []
    rows = docking_rows(context.of("bench"))
    missing = without_result(context.of("bench"))
    fastest = [finding for contest in found if (finding := _fastest(contest, missing)) is not None]
    openmp = [curve for curve in curves(rows) if curve.rows[0].model == "openmp"]
    asked = context.asks_for(ASSESSMENT, "docking.claim")
    linear = [finding for curve in openmp if (finding := _linear(curve, asked)) is not None]
    return [*fastest, *linear, *(_claims(rows, openmp) if asked else ())]


def _fastest(contest: Contest, missing: Sequence[Group[Any]]) -> Finding | None:
    """Set the fastest beside the fastest of another model; nothing without one."""
    rival = contest.rival()
    ratio = contest.times_the_fastest(rival) if rival else None
    if rival is None or ratio is None:
        return None
    first, result = contest.rows[0], contest.told_apart(rival)
    against = [(row, contest.told_apart(row)) for row in contest.rivals()]
    tied = [row for row, comparison in against if comparison is None or comparison.verdict is not Verdict.BETTER]
    made = [comparison for _, comparison in against if comparison is not None]
    upset = any(comparison is None or comparison.verdict is Verdict.WORSE for _, comparison in against)
    confidence = Confidence.INCONCLUSIVE if upset else lowest_confidence(comparison.confidence for comparison in made)
    slowest = contest.rows[-1]
    if tied:
        alike = [comparison for row, comparison in against if row in tied]
        equal = all(comparison is not None and comparison.equal for comparison in alike)
        how = f"are {same_within(alike[0])}" if equal and alike[0] else "cannot be told apart"
        every = clean(names([first.name, *(row.name for row in tied)], 5))
        claim = f"{every} are the fastest docking kernels and {how}: the median of the first is {quantity(first.time, 's')} per pose."
    else:
        claim = (
            f"{clean(first.name)} is the fastest docking kernel: {clean(rival.name)}, the next model, takes "
            f"{factor(ratio.value)} times ({ends(ratio, factor)}) its time per pose."
        )
    compiled = [row for row in contest.rows if row.first_run and row.model != first.model]
    longest = max(compiled, key=lambda row: max(row.first_run), default=None)
    return Finding(
        subject="study",
        kind="docking",
        topic="fastest",
        named=True,
        confidence=confidence,
        comparisons=tuple(made),
        scope=contest_title(contest),
        groups=(first.group, rival.group),
        decision=_decision(contest, result, tied, missing),
        claim=claim,
        evidence=joined(
            f"{quantity(first.time, 's')} and {quantity(rival.time, 's')} per pose",
            f"the slowest, {clean(slowest.name)}, takes {_times(slowest, first)} times",
            f"the longest first run is {clean(longest.name)}'s, {quantity(max(longest.first_run), 's')}"
            if longest is not None
            else "",
            result.reason if result is not None else "",
        ),
    )


def _decision(
    contest: Contest, result: Comparison | None, tied: Sequence[Contestant], missing: Sequence[Group[Any]]
) -> Decision:
    first, rival = contest.rows[0], contest.rival()
    second = tied[0] if tied else rival
    second_name = clean(second.name) if second is not None else ""
    if tied:
        result = contest.told_apart(tied[0])
    later = next((row for row in contest.rows[1:] if row not in tied), None)
    same = [contest.told_apart(row) for row in tied]
    apart = [group for group in missing if group.cell.threads == contest.threads]
    labels = group_labels(apart, always=("options",))
    return Decision(
        column=COLUMN,
        row=clean(f"{contest.deck}, {count(contest.poses, 'pose')}"),
        scope=count(contest.threads, "thread"),
        winner=clean(first.name),
        tied=tuple(clean(row.name) for row in tied),
        equal=bool(same) and all(comparison is not None and comparison.equal for comparison in same),
        margin=result.margin if result is not None else MARGIN,
        gain=tie_text(result, second_name) if tied else gain_text(result, "sooner than", second_name),
        value=f"{quantity(first.time, 's')} per pose",
        second=clean(later.name) if later else "",
        left_out=tuple(
            LeftOut(what=clean(labels[group.cell]), why=why_not(group) or "wrong energies or no time")
            for group in apart
        ),
    )


def _linear(curve: Curve, asked: bool) -> Finding | None:
    """Say how far OpenMP scales; nothing where two times have no ratio."""
    # Threads that share cores cannot be faster for it.
    rows = [row for row in curve.rows if not row.group.over_subscribed]
    if len(rows) < 2:
        return None
    first, last = rows[0], rows[-1]
    speed_up = curve.speed_up(last)
    if speed_up is None:
        return None
    ideal = last.threads / curve.base
    least = _NEAR_LINEAR * ideal
    decided = len(last.pose_time) > 1 and (speed_up.low >= least or speed_up.high < least)
    scaling = "is near-linear" if speed_up.low >= least else "is not linear"
    if not decided:
        scaling = "may or may not be linear"
    return Finding(
        subject="study",
        kind="docking",
        topic="threads",
        named=True,
        confidence=Confidence.PROVISIONAL if decided else Confidence.INCONCLUSIVE,
        scope=clean(f"{first.deck}, {count(first.poses, 'pose')}"),
        claim=f"{clean(first.name)}{'' if last.pinned else ', not pinned,'} {scaling} from "
        f"{curve.base} to {count(last.threads, 'thread')}: {factor(speed_up.value)} times the speed "
        f"({ends(speed_up, factor)}), {percent(speed_up.value / ideal)} of linear.",
        evidence=joined(
            f"{quantity(first.time, 's')} and {quantity(last.time, 's')} per pose",
            ""
            if last.threads >= _PUBLISHED_CORES or not asked
            else f"{count(last.threads, 'thread')} cannot show what {_PUBLISHED_CORES} cores do",
        ),
    )


def _claims(rows: Sequence[Contestant], openmp: Sequence[Curve]) -> list[Finding]:
    """Say of each published claim what decides it here, or what is missing."""
    within = [row for curve in openmp for row in curve.rows if not row.group.over_subscribed]
    most = max((row.threads for row in within), default=0)
    julia = [row for row in rows if row.model == "julia" and row.threads == 1]
    plain = [row for row in rows if row.model == "openmp" and row.threads == 1]
    cuda = [row for row in rows if row.model == "cuda" and row.flops]
    return [
        _claim(
            f"OpenMP linear to {_PUBLISHED_CORES} cores",
            f"measured here to {count(most, 'thread')}" if most else "nothing here ran on several numbers of threads",
            decided=most >= _PUBLISHED_CORES,
        ),
        _claim(
            f"Julia {factor(_PUBLISHED_JULIA)} times the OpenMP baseline on one thread",
            _julia(julia, plain),
            decided=any((a.deck, a.poses) == (b.deck, b.poses) for a in julia for b in plain),
        ),
        _claim(
            "CUDA over 10 TFLOP/s on a V100",
            f"{quantity(max(max(row.flops) for row in cuda), 'FLOP/s')} at PPWI "
            f"{max(cuda, key=lambda row: max(row.flops)).per_item} here"
            if cuda
            else "no GPU took part here",
            decided=bool(cuda) and max(max(row.flops) for row in cuda) > _PUBLISHED_CUDA,
        ),
    ]


def _julia(julia: Sequence[Contestant], plain: Sequence[Contestant]) -> str:
    """Tell the ratio of times; where Julia is missing, what OpenMP alone gains by poses per work-item."""
    best = min(julia, key=lambda row: middle(row.pose_time), default=None)
    if best is not None:
        # Poses of another deck are other work.
        plain = [row for row in plain if (row.deck, row.poses) == (best.deck, best.poses)]
    if not plain:
        return f"OpenMP did not run on one thread{' and the deck of Julia' if best else ''} here"
    slow, fast = (choose(plain, key=lambda row: middle(row.pose_time)) for choose in (max, min))
    alike = slow.deck == fast.deck and slow.poses == fast.poses
    openmp = (
        f"OpenMP itself takes {_times(slow, fast)} times as long as {clean(slow.name)} as it does as "
        f"{clean(fast.name)}, so such a factor depends on the baseline"
        if alike and slow is not fast
        else "OpenMP ran in one configuration"
    )
    if best is None:
        return f"Julia did not run here; {openmp}"
    return f"Julia takes {_times(best, fast)} times the time per pose of {clean(fast.name)} here; {openmp}"


def _times(row: Contestant, base: Contestant) -> str:
    return factor(middle(row.pose_time) / middle(base.pose_time))


def _claim(claim: str, here: str, *, decided: bool) -> Finding:
    return Finding(
        subject="claims",
        kind="claim",
        named=True,
        confidence=Confidence.PROVISIONAL if decided else Confidence.INCONCLUSIVE,
        claim=f"{ASSESSMENT}: {claim}; {here}.",
        evidence="the section on docking has the times; rates by the formula are compared at equal poses "
        "per work-item only, which the study did not publish",
    )
