"""Findings on updates that wait for nobody: sooner at the quality than in step, or not."""

from __future__ import annotations

from transect.analysis.labels import word
from transect.analysis.parallelism import median_of
from transect.analysis.quality import TIME, quality_target, reaches_target
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import doubt_words, ratio_words
from transect.report.engine.finding import Finding, joined, limited_confidence
from transect.report.engine.text import clean, count, number, quantity
from transect.report.topics.asynchronous.facts import Asynchronous, Twin, asynchronous_groups, score_of
from transect.report.topics.parallel.findings import scope_of, strategy_words
from transect.stats.comparisons import Confidence


def asynchronous_findings(context: Context) -> list[Finding]:
    """Per asynchronous group and synchronous twin: the time to quality, how stale, and the quality at the end."""
    return [
        _finding(training, twin)
        for workload in context.workloads("train")
        for training in asynchronous_groups(context, workload)
        for twin in training.twins[:2]
    ]


def staleness_words(training: Asynchronous) -> str:
    """Say how stale gradients were: `median 1, 95th percentile 3, most 5 updates`."""
    middle, late = median_of(training.group, "staleness"), median_of(training.group, "staleness_p95")
    parts = [
        f"median {number(middle)}" if middle is not None else "",
        f"95th percentile {number(late)}" if late is not None else "",
        f"most {training.most}" if training.most is not None else "",
    ]
    return ", ".join(filter(None, parts)) + " updates"


def _finding(training: Asynchronous, twin: Twin) -> Finding:
    group, synchronous = training.group, twin.group
    target, rival = quality_target([group]), strategy_words(synchronous)
    name = clean(f"{word('strategy', group.cell.strategy)} (staleness {training.bound})")
    if twin.time is None:
        late = [words for words, side in ((name, group), (rival, synchronous)) if not reaches_target(side)]
        claim = f"{' and '.join(late)} {'do' if len(late) > 1 else 'does'} not reach {target} in every run"
        claim += f", {rival} {twin.words} does" if late == [name] else ""
        claim += f", {name} does" if late == [rival] else ""
        confidence, reason = Confidence.PROVISIONAL, ""
    else:
        claim = f"{name} reaches {target} in {ratio_words(twin.time)} the time of {rival} {twin.words}{doubt_words(twin.time)}"
        confidence, reason = limited_confidence(twin.time.confidence, group, synchronous), twin.time.reason
        if twin.time.shown:
            claim += ": sooner" if twin.time.better is group else ": later, so waiting for nobody does not pay here"
    if any(side.over_subscribed for side in (group, synchronous)):
        confidence = Confidence.INCONCLUSIVE
    return Finding(
        subject=str(group.cell.workload),
        scope=scope_of(group),
        kind="asynchronous",
        named=True,
        short=claim,
        groups=(group, synchronous),
        claim=f"{claim}; its gradients are stale by {staleness_words(training)}{_quality(training, twin)}.",
        confidence=confidence,
        contrasts=(twin.time,) if twin.time is not None else (),
        evidence=joined(
            f"{quantity(median_of(group, TIME), 's')} and {quantity(median_of(synchronous, TIME), 's')}"
            if twin.time is not None
            else "",
            f"{count(training.workers, 'worker')} and a server; {count(synchronous.cell.ranks, 'rank')} beside",
            "its steps are not checkable against the reference: asynchronous",
            reason,
        ),
    )


def _quality(training: Asynchronous, twin: Twin) -> str:
    score, twin_score = score_of(training.group), score_of(twin.group)
    if score is None or twin_score is None:
        return ""
    return f"; it ends at {score[0]} {number(score[1])}, the other at {number(twin_score[1])}"
