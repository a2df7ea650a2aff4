"""Findings on one training with several batches, in one process: which reaches the target soonest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.best import best
from transect.analysis.groups import Group, grouped
from transect.analysis.labels import people_name
from transect.analysis.quality import TIME, may_be_ranked, quality_target, score_of
from transect.analysis.scaling import TrainGroup
from transect.domain.cell import Cell
from transect.report.engine.best_words import beside, confidence_of, with_open
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, limited_confidence, median, names
from transect.report.engine.text import clean, count, number, quantity
from transect.report.topics.training.words import among
from transect.stats.comparisons import Confidence

_RULE = "training.batch"


def batch_findings(context: Context) -> list[Finding]:
    """Say of each training on one rank with more than one batch which batch learns soonest; nothing unless a question asks."""
    # Not `asks`: where no question names a rule, sizes of batches are there for something else.
    if not context.asks_for("", _RULE):
        return []
    able = [
        group
        for group in context.of("train")
        if group.cell.ranks == 1 and group.ok and not group.wrong and not group.kind.synthetic and group.global_batch
    ]
    sweeps = [
        sorted(one, key=lambda group: group.global_batch or 0)
        for one in grouped(able, lambda group: group.cell.apart_from("batch")).values()
        if len(one) > 1
    ]
    firsts = [one[0].cell for one in sweeps]
    return [made for one in sweeps for made in _findings(one, context, firsts)]


def _name(group: Group) -> str:
    return f"batch {group.global_batch}"


def _findings(groups: Sequence[TrainGroup], context: Context, beside_it: Sequence[Cell]) -> Iterator[Finding]:
    cell, target, reached = groups[0].cell, quality_target(groups), [*filter(may_be_ranked, groups)]
    missed = names([_name(group) for group in groups if group not in reached], 4)
    found = best(among(context.contrasts.of(_RULE, str(cell.workload)), reached), reached, metric=TIME)
    confidence = Confidence.PROVISIONAL
    if found is None:
        claim = f"with none of {count(len(groups), 'batch', 'batches')} every run reaches {target}"
    elif len(reached) == 1:
        claim = f"{_name(found.first)} alone reaches {target} in every run"
    else:
        without = f"; with {missed} not every run does" if missed else ""
        took = quantity(median(found.first, TIME) or 0.0, "s")
        claim = f"{_name(found.first)} reaches {target} soonest, in {took}{beside(found, _name)}{without}"
        confidence = limited_confidence(confidence_of(found), *reached)
    parts = [
        people_name(cell, beside_it, never=("batch", "threads", *dict(groups[0].kind.unusual))),
        groups[0].kind.words,
        count(cell.threads, "thread"),
    ]
    made = Finding(
        subject=str(cell.workload),
        scope=clean(", ".join(filter(None, parts))),
        claim=f"{claim}.",
        evidence=joined(
            "; ".join(map(_words, groups)),
            *(f"{_name(c.group)} beside {_name(c.base)}: {c.reason}" for c in found.contrasts) if found else (),
        ),
        confidence=confidence,
        kind="batch",
        contrasts=found.contrasts if found else (),
        tests=found.tests if found else (),
        groups=tuple(groups),
    )
    return with_open(_name, (made, found)) if found and len(reached) > 1 else iter([made])


def _words(group: TrainGroup) -> str:
    score = score_of([group])
    ends = f"{_name(group)}: {score.words} {number(median(group, score.name) or 0.0)} at the end"
    if not may_be_ranked(group):
        return f"{ends}, target not reached in every run"
    return f"{ends}, {quantity(median(group, TIME) or 0.0, 's')} and {number(median(group, 'steps_to_quality') or 0.0)} steps to the target"
