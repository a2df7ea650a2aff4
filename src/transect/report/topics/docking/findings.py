"""Findings on the docking kernel: who is fastest, what poses per work-item and threads do, and what was published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from transect.analysis.best import best
from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import all_joined
from transect.analysis.groups import Group, grouped
from transect.analysis.labels import group_labels
from transect.report.engine.best_words import beside, confidence_of, with_open
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import needs_words
from transect.report.engine.decision import Decision, LeftOut, why_not
from transect.report.engine.finding import Finding, joined, lowest_confidence, names
from transect.report.engine.text import clean, count, factor, number, percent, quantity
from transect.report.topics.docking.facts import POSE, Contest, Contestant, contests, docking_rows, without_result
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Answer

# The column of the decision table.
COLUMN = "dock"
ASSESSMENT = "HPC assessment (GWDG SCC)"
_PUBLISHED_CORES = 16
_PUBLISHED_CUDA = 10e12
_PUBLISHED_JULIA = 7.0
# A first run that takes as many times a timed one, and as long, compiles.
_COMPILES_S = 0.1


def contest_title(contest: Contest) -> str:
    """Name what the rows of a contest share."""
    return clean(f"{contest.deck}, {count(contest.poses, 'pose')}, {count(contest.threads, 'thread')}")


def docking_findings(context: Context) -> list[Finding]:
    """Return the fastest of each contest, what poses per work-item and threads do, and what decides each claim."""
    rows = docking_rows(context.of("bench"))
    if not rows:
        return []
    of_group = {id(row.group): row for row in rows}
    missing = without_result(context.of("bench"))
    found = [one for contest in contests(rows) for one in _fastest(context, contest, of_group, missing)]
    found += [*_poses(context, of_group), *_threads(context, of_group)]
    return [*found, *(_claims(rows) if context.asks_for(ASSESSMENT, "docking.claim") else ())]


def _fastest(
    context: Context, contest: Contest, of_group: dict[int, Contestant], missing: Sequence[Group[Any]]
) -> Iterator[Finding]:
    """Say who is the fastest of the models, each in its fastest configuration; nothing where one model ran."""
    racing = contest.best_of_models
    if len(racing) < 2:
        return
    raced = [row.group for row in racing]
    here = {id(row.group) for row in contest.rows}
    planned = (pair for pair in context.contrasts.of("docking.*") if {id(pair.group), id(pair.base)} <= here)
    pairs = all_joined(planned, raced, context.floors, POSE, varies="kernel")
    found = best(pairs, raced, metric=POSE)
    if found is None:
        return

    def name(group: Group[Any]) -> str:
        return clean(of_group[id(group)].words)

    first = of_group[id(found.first)]
    short = f"{clean(first.words)} takes {quantity(first.time, 's')} a pose"
    short += beside(found, name)
    compiling = [row for row in racing if min(row.first_run, default=0.0) > _COMPILES_S]
    longest = max(compiling, key=lambda row: min(row.first_run), default=None)
    if longest is not None:
        short += f"; {clean(longest.words)} compiles for {quantity(min(longest.first_run), 's')} first"
    apart = [group for group in missing if group.cell.threads == contest.threads]
    labels = group_labels(apart, always=("options",))
    fastest = Finding(
        subject="study",
        kind="docking",
        topic="fastest",
        named=True,
        confidence=confidence_of(found),
        contrasts=found.contrasts,
        numbers=found.numbers(lambda group: of_group[id(group)].time),
        tests=found.tests,
        scope=contest_title(contest),
        groups=(first.group, *(row.group for row in racing if row is not first)),
        claim=f"{short}.",
        short=short,
        decision=Decision(
            column=COLUMN,
            row=clean(f"{contest.deck}, {count(contest.poses, 'pose')}"),
            scope=count(contest.threads, "thread"),
            winner=clean(first.words),
            value=f"{quantity(first.time, 's')} per pose",
            tied=tuple(map(name, found.tied)),
            unknown=tuple(map(name, found.unknown)),
            margin=context.analysis_plan.margin,
            left_out=tuple(
                LeftOut(what=clean(labels[group.cell]), why=why_not(group) or "wrong energies or no time")
                for group in apart
            ),
        ),
        evidence=joined(
            "of each model its fastest configuration",
            *(
                f"{clean(of_group[id(c.group)].name)} beside {clean(of_group[id(c.base)].name)}: {c.reason}"
                for c in found.contrasts[:3]
            ),
        ),
    )
    yield from with_open(name, (fastest, found))


def _poses(context: Context, of_group: dict[int, Contestant]) -> Iterator[Finding]:
    """Say what the number of poses per work-item does to the time of a pose, beside the model's own number."""
    pairs = [c for c in context.contrasts.of("docking.poses") if {id(c.group), id(c.base)} <= of_group.keys()]
    for members in grouped(pairs, lambda pair: id(pair.base)).values():
        base = of_group[id(members[0].base)]
        parts = {
            answer: [pair for pair in members if pair.answer is answer]
            for answer in (Answer.DIFFERENT, Answer.SAME, Answer.OPEN)
        }

        def listed(several: Sequence[Contrast]) -> str:
            return names([str(of_group[id(pair.group)].per_item) for pair in several], 9)

        said = [f"{listed([pair])} takes {number(pair.cost.value)} times as long" for pair in parts[Answer.DIFFERENT]]
        if same := parts[Answer.SAME]:
            said.append(
                f"{listed(same)} {'is' if len(same) == 1 else 'are'} as fast within {percent(same[0].comparison.margin)}"
            )
        if unknown := parts[Answer.OPEN]:
            said.append(f"of {listed(unknown)} it is not known{needs_words(unknown[0])}")
        short = f"with {base.per_item} poses a work-item {clean(base.words)} takes {quantity(base.time, 's')} a pose; {'; '.join(said)}"
        decided = [pair.confidence for pair in members if pair.answer is not Answer.OPEN]
        yield Finding(
            subject="study",
            kind="docking",
            topic="poses",
            scope=clean(f"{base.deck}, {count(base.poses, 'pose')}, {count(base.threads, 'thread')}"),
            claim=f"{short}; the counted rate cannot be compared between them.",
            short=short,
            confidence=lowest_confidence(decided) if decided else Confidence.INCONCLUSIVE,
            contrasts=tuple(members),
            groups=(base.group, *(pair.group for pair in members)),
            evidence=joined(*(f"{of_group[id(c.group)].per_item}: {c.reason}" for c in members)),
        )


def _threads(context: Context, of_group: dict[int, Contestant]) -> Iterator[Finding]:
    """Say how much faster OpenMP is on more threads, and what it does where they are."""
    for pair in context.contrasts.of("docking.threads"):
        if not {id(pair.group), id(pair.base)} <= of_group.keys():
            continue
        row, base = of_group[id(pair.group)], of_group[id(pair.base)]
        here = f"{clean(row.words if row.threads != base.threads else 'OpenMP')} on {count(row.threads, 'thread')}"
        if row.threads == base.threads:
            what, than = f"{here} pinned as {clean(row.options)}", "not pinned"
        else:
            what, than = here, f"on {count(base.threads, 'thread')}"
        gain = pair.cost.inverse
        if pair.answer is Answer.DIFFERENT:
            claim = f"{what} is {factor(gain.value)} times as fast as {than}"
            claim += (
                f", {percent(gain.value * base.threads / row.threads)} of linear" if row.threads > base.threads else ""
            )
        elif pair.answer is Answer.SAME:
            claim = f"{what} is as fast as {than}, within {percent(pair.comparison.margin)}"
        else:
            claim = f"whether {what} is faster than {than} is not known{needs_words(pair)}"
        yield Finding(
            subject="study",
            kind="docking",
            topic="threads",
            named=True,
            confidence=pair.confidence,
            scope=clean(f"{row.deck}, {count(row.poses, 'pose')}"),
            claim=f"{claim}.",
            short=claim,
            contrasts=(pair,),
            groups=(row.group, base.group),
            evidence=joined(f"{quantity(row.time, 's')} and {quantity(base.time, 's')} per pose", pair.reason),
        )


def _claims(rows: Sequence[Contestant]) -> list[Finding]:
    """Say of each published claim what decides it here, or what is missing."""
    threads = {
        row.threads for row in rows if row.model == "openmp" and row.device == "cpu" and not row.group.over_subscribed
    }
    most = max(threads) if len(threads) > 1 else 0
    julia = [row for row in rows if row.model == "julia" and row.threads == 1]
    plain = [row for row in rows if row.model == "openmp" and row.threads == 1]
    cuda = max((row for row in rows if row.model == "cuda" and row.flops), key=lambda row: max(row.flops), default=None)
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
            f"{quantity(max(cuda.flops), 'FLOP/s')} here" if cuda else "no GPU took part here",
            decided=cuda is not None and max(cuda.flops) > _PUBLISHED_CUDA,
        ),
    ]


def _julia(julia: Sequence[Contestant], plain: Sequence[Contestant]) -> str:
    """Tell the ratio of times."""
    best_julia = min(julia, key=lambda row: row.time, default=None)
    if best_julia is not None:
        # Poses of another deck are other work.
        plain = [row for row in plain if (row.deck, row.poses) == (best_julia.deck, best_julia.poses)]
    if not plain:
        return f"OpenMP did not run on one thread{' and the deck of Julia' if best_julia else ''} here"
    if best_julia is None:
        return "Julia did not run here"
    fast = min(row.time for row in plain)
    return f"Julia takes {factor(best_julia.time / fast)} times as long as OpenMP's fastest here"


def _claim(claim: str, here: str, *, decided: bool) -> Finding:
    return Finding(
        subject="claims",
        kind="claim",
        named=True,
        confidence=Confidence.PROVISIONAL if decided else Confidence.INCONCLUSIVE,
        claim=f"{ASSESSMENT}: {claim}; {here}.",
        evidence="rates by the formula are compared at equal poses per work-item only, which the study did not publish",
    )
