"""Findings on the docking kernel: who is fastest, and what poses per work-item and threads do."""

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
# A first run that takes as many times a timed one, and as long, compiles.
_COMPILES_S = 0.1


def contest_title(contest: Contest) -> str:
    """Name what the rows of a contest share."""
    return clean(f"{contest.deck}, {count(contest.poses, 'pose')}, {count(contest.threads, 'thread')}")


def docking_findings(context: Context) -> list[Finding]:
    """Return the fastest of each contest, and what poses per work-item and threads do."""
    rows = docking_rows(context.of("bench"))
    if not rows:
        return []
    of_group = {id(row.group): row for row in rows}
    missing = without_result(context.of("bench"))
    found = [one for contest in contests(rows) for one in _fastest(context, contest, of_group, missing)]
    return [*found, *_poses(context, of_group), *_threads(context, of_group)]


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
            ways = " ".join(filter(None, (row.schedule, f"chunk {row.chunk}" if row.chunk else "")))
            what, than = f"{here} pinned as {clean(row.where)}{f' ({ways})' if ways else ''}", "not pinned"
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
