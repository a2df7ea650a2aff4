"""Findings on updates that wait for nobody: sooner at the quality than in step, or not."""

from __future__ import annotations

from transect.analysis.asynchronous import TIME, Asynchronous, Twin, asynchronous_groups, reaches, score_of
from transect.analysis.comparisons import Confidence
from transect.analysis.parallelism import median_of
from transect.report.context import Context
from transect.report.findings.finding import Finding, joined, limited_confidence
from transect.report.findings.parallel import doubt_of, scope_of, strategy_words, times_of
from transect.report.findings.training import quality_target
from transect.report.text import clean, count, number, quantity


def asynchronous_findings(context: Context) -> list[Finding]:
    """Per asynchronous group and synchronous twin: the time to quality, how stale, and the quality at the end."""
    return [
        _finding(one, twin)
        for workload in context.workloads("train")
        for one in asynchronous_groups(context.of("train", workload), context.floors)
        for twin in one.twins[:2]
    ]


def staleness_words(one: Asynchronous) -> str:
    """Say how stale gradients were: `median 1, 95th percentile 3, most 5 updates`."""
    middle, late = median_of(one.group, "staleness"), median_of(one.group, "staleness_p95")
    parts = [
        f"median {number(middle)}" if middle is not None else "",
        f"95th percentile {number(late)}" if late is not None else "",
        f"most {one.most}" if one.most is not None else "",
    ]
    return ", ".join(filter(None, parts)) + " updates"


def _finding(one: Asynchronous, twin: Twin) -> Finding:
    group, other = one.group, twin.group
    target, rival = quality_target([group]), strategy_words(other)
    name = clean(f"{group.cell.strategy} (staleness {one.bound})")
    if twin.time is None:
        late = [words for words, side in ((name, group), (rival, other)) if not reaches(side)]
        claim = f"{' and '.join(late)} {'do' if len(late) > 1 else 'does'} not reach {target} in every run"
        claim += f", {rival} {twin.words} does" if late == [name] else ""
        claim += f", {name} does" if late == [rival] else ""
        confidence, reason = Confidence.PROVISIONAL, ""
    else:
        claim = (
            f"{name} reaches {target} in {times_of(twin.time)} the time of {rival} {twin.words}{doubt_of(twin.time)}"
        )
        confidence, reason = limited_confidence(twin.time.confidence, group, other), twin.time.reason
        if twin.time.shown:
            claim += ": sooner" if twin.time.ratio.value < 1 else ": later, so waiting for nobody does not pay here"
    if any(side.over_subscribed for side in (group, other)):
        confidence = Confidence.INCONCLUSIVE
    return Finding(
        subject=str(group.cell.workload),
        scope=scope_of(group),
        kind="asynchronous",
        named=True,
        short=claim,
        groups=(group, other),
        claim=f"{claim}; its gradients are stale by {staleness_words(one)}{_quality(one, twin)}.",
        confidence=confidence,
        comparisons=twin.time.comparisons if twin.time is not None else (),
        evidence=joined(
            f"{quantity(median_of(group, TIME), 's')} and {quantity(median_of(other, TIME), 's')}"
            if twin.time is not None
            else "",
            f"{count(one.workers, 'worker')} and a server; {count(other.cell.ranks, 'rank')} beside",
            "its steps are not checkable against the reference: asynchronous",
            reason,
        ),
    )


def _quality(one: Asynchronous, twin: Twin) -> str:
    own, other = score_of(one.group), score_of(twin.group)
    if own is None or other is None:
        return ""
    return f"; it ends at {own[0]} {number(own[1])}, the other at {number(other[1])}"
