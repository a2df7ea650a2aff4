"""Findings on one training with several batches, in one process: which reaches the target soonest."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.contrasts import contrast
from transect.analysis.groups import grouped
from transect.analysis.labels import word
from transect.analysis.quality import TIME, quality_target, reaches_target, score_of
from transect.analysis.scaling import TrainGroup
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import basis_words, doubt_words, ratio_words
from transect.report.engine.finding import Finding, joined, limited_confidence, median, names
from transect.report.engine.text import clean, count, number, quantity
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
    sweeps = grouped(able, lambda group: group.cell.apart_from("batch")).values()
    return [_finding(sorted(one, key=_batch), context) for one in sweeps if len(one) > 1]


def _batch(group: TrainGroup) -> int:
    return group.global_batch or 0


def _time(group: TrainGroup) -> float:
    return median(group, TIME) or 0.0


def _finding(groups: Sequence[TrainGroup], context: Context) -> Finding:
    cell, reached = groups[0].cell, sorted(filter(reaches_target, groups), key=_time)
    target = quality_target(groups)
    missed = names([f"batch {_batch(group)}" for group in groups if group not in reached], 4)
    without = f"; with {missed} not every run does" if missed else ""
    result, confidence = None, Confidence.PROVISIONAL
    if not reached:
        claim = f"with none of {count(len(groups), 'batch', 'batches')} every run reaches {target}"
    elif len(reached) == 1:
        claim = f"batch {_batch(reached[0])} alone reaches {target} in every run"
    else:
        best, rival = reached[:2]
        claim = f"batch {_batch(best)} reaches {target} soonest, in {quantity(_time(best), 's')}; "
        result = contrast(rival, best, context.floors, TIME, varies="batch", candidates=len(reached), asked=True)
        assert result is not None, "both have times"
        claim += f"batch {_batch(rival)} takes {ratio_words(result)} as long{doubt_words(result)}{without}"
        sure = result.better is best
        confidence = limited_confidence(result.confidence, best, rival) if sure else Confidence.INCONCLUSIVE
    parts = [word("framework", cell.framework), groups[0].kind.words, count(cell.threads, "thread")]
    return Finding(
        subject=str(cell.workload),
        scope=clean(", ".join(filter(None, parts))),
        claim=f"{claim}.",
        evidence=joined(
            "; ".join(map(_words, groups)), *([basis_words(result), result.reason] if result is not None else [])
        ),
        confidence=confidence,
        kind="batch",
        contrasts=() if result is None else (result,),
        groups=tuple(groups),
    )


def _words(group: TrainGroup) -> str:
    score = score_of([group])
    ends = f"batch {_batch(group)}: {score.words} {number(median(group, score.name) or 0.0)} at the end"
    if not reaches_target(group):
        return f"{ends}, target not reached in every run"
    return f"{ends}, {quantity(_time(group), 's')} and {number(median(group, 'steps_to_quality') or 0.0)} steps to the target"
