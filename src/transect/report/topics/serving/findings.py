"""Findings on runtimes: which one answers first, which one serves most, and what an exporter changes."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from transect.analysis.best import Best, best
from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import all_joined, contrast
from transect.analysis.groups import grouped
from transect.analysis.labels import group_labels, people_name
from transect.analysis.serving import (
    RUN,
    WHOLE,
    InferGroup,
    comparable,
    identity_size,
    measure_of,
    rates,
    takes_onnx,
    was_compared,
)
from transect.report.engine.best_words import beside, confidence_of, with_open
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import needs_words
from transect.report.engine.decision import Decision, LeftOut, why_not
from transect.report.engine.finding import Finding, inside_run, joined, lost_runs
from transect.report.engine.text import count, number, percent, quantity
from transect.report.topics.serving.facts import faithful_groups, place_of, runtime_name
from transect.stats.comparisons import Confidence
from transect.stats.noise import middle
from transect.stats.verdicts import Answer

# The columns of the decision table.
SERVE_ONE, SERVE_MANY = "serve-one", "serve-many"


def serving_findings(context: Context) -> list[Finding]:
    """Per workload, provider and precision: the lowest latency, the highest throughput, and the exporters."""
    found: list[Finding] = []
    for workload in context.workloads("infer"):
        if identity_size(workload) is not None:
            # What a call costs is a finding of its own.
            continue
        faithful = faithful_groups(context, workload)
        left_out = _left_out(context, workload, faithful)
        conditions = comparable(faithful)
        if not conditions and left_out:
            found.append(_nothing(workload, left_out))
        raced, exported = list[tuple[Finding, Best]](), list[Finding]()
        for words, groups in conditions.items():
            smallest = min(group.cell.batch for group in groups)
            first = _at_best_threads(context, [group for group in groups if group.cell.batch == smallest])
            # What could not be used is named once, with the first of its conditions.
            apart = left_out if words == next(iter(conditions)) else ()
            raced += _best(context, workload, first, groups, SERVE_ONE, f"on {words}, batch {smallest}", apart)
            most = max(groups, key=lambda group: middle(rates(group, RUN) or [0.0]))
            if most.cell.batch > smallest:
                many = [g for g in groups if (g.cell.batch, g.cell.threads) == (most.cell.batch, most.cell.threads)]
                raced += _best(
                    context, workload, many, groups, SERVE_MANY, f"on {words}, batch {most.cell.batch}", apart
                )
            exported += _exporters(context, workload, first, f"on {words}, batch {smallest}")
        found += [*with_open(runtime_name, *raced), *exported]
    return found


def _at_best_threads(context: Context, groups: Sequence[InferGroup]) -> list[InferGroup]:
    """Return the groups on the fewest threads, unless the first of them is shown to be faster on more."""
    of_threads = dict(sorted(grouped(groups, lambda group: group.cell.threads).items()))
    chosen, *others = of_threads.values()
    for members in others:
        metric = measure_of([*chosen, *members])
        first = min(
            (group for group in chosen if group.values(metric)), key=lambda g: middle(g.counted(metric)), default=None
        )
        twin = next(
            (g for g in members if first and g.cell.apart_from("threads") == first.cell.apart_from("threads")), None
        )
        if first is not None and twin is not None:
            pair = contrast(twin, first, context.floors, metric, varies="threads")
            chosen = members if pair is not None and pair.better is twin else chosen
    return list(chosen)


def _left_out(context: Context, workload: str, faithful: Sequence[InferGroup]) -> tuple[LeftOut, ...]:
    """Name the cells of runtimes that take no part, and why."""
    kept = {id(group) for group in faithful}
    apart = [group for group in context.of("infer", workload) if id(group) not in kept]
    labels = group_labels(apart, always=("runtime", "threads", "batch"))
    return tuple(
        LeftOut(
            what=labels[group.cell],
            why=why_not(group)
            or ("wrong result" if group.wrong else "its export or its outputs are not the framework's"),
        )
        for group in apart
    )


def _nothing(workload: str, left_out: tuple[LeftOut, ...]) -> Finding:
    """Say that no runtime can be compared: all failed, were skipped or give wrong outputs."""
    reason = "no runtime gives a usable and right answer"
    return Finding(
        subject=workload,
        claim=f"{reason}, so no latency is compared.",
        evidence=joined(*(f"{omitted.what}: {omitted.why}" for omitted in left_out[:3])),
        confidence=Confidence.CONFIRMED,
        kind="runtime",
        decision=Decision(column=SERVE_ONE, instead=reason, left_out=left_out),
    )


def _pairs(context: Context, workload: str, groups: Sequence[InferGroup], metric: str) -> list[Contrast]:
    """Return the planned pairs among groups by one metric: of runtimes, and of one runtime's files."""
    ids = {id(group) for group in groups}
    of_rules = (context.contrasts.of(rule, workload) for rule in ("serving.runtime", "serving.exporter"))
    pairs = [made for every in of_rules for made in every if {id(made.group), id(made.base)} <= ids]
    told = metric if any(made.metric == metric for made in pairs) else next((made.metric for made in pairs), metric)
    return [made for made in pairs if made.metric == told]


def _racing(groups: Sequence[InferGroup], pairs: Sequence[Contrast]) -> list[InferGroup]:
    """Return each runtime with the file of which it is fastest, or with one that more runtimes have if that is not shown.

    Of groups in the order of their times.
    """
    shared = Counter(group.cell.exporter for group in groups)
    slower = {(id(made.better), id(side)) for made in pairs for side in (made.group, made.base)}
    of_runtime = grouped(groups, lambda group: group.cell.runtime).values()
    return [
        max(
            (group for group in members if (id(members[0]), id(group)) not in slower or group is members[0]),
            key=lambda group: shared[group.cell.exporter],
        )
        for members in of_runtime
    ]


def _best(
    context: Context,
    workload: str,
    groups: Sequence[InferGroup],
    every: Sequence[InferGroup],
    column: str,
    scope: str,
    left_out: tuple[LeftOut, ...],
) -> Iterator[tuple[Finding, Best]]:
    """Compare the runtimes of one point."""
    metric = measure_of(group for group in groups if group.values(RUN))
    timed = sorted((g for g in groups if g.values(metric)), key=lambda g: (middle(g.counted(metric)), g.cell.id))
    pairs = _pairs(context, workload, timed, metric)
    racing = _racing(timed, pairs)
    pairs = all_joined(pairs, racing, context.floors, metric, varies="runtime")
    found = best(pairs, racing, metric=metric)
    if found is None:
        return
    first = found.first
    value = _value(first, metric, column)
    absent = {g.cell.runtime: g for g in every if g.cell.runtime not in {other.cell.runtime for other in groups}}
    left_out += tuple(LeftOut(what=name, why=f"not measured at {place_of(first)}") for name in sorted(absent))
    claim = f"{people_name(first.cell, always=('threads',), never=('exporter',))} {value}"
    claim += "; no other runtime was measured there" if len(racing) < 2 else beside(found, runtime_name)
    confidence = confidence_of(found)
    if confidence is Confidence.CONFIRMED and not was_compared(first):
        confidence = Confidence.PROVISIONAL
    made = Finding(
        subject=workload,
        scope=scope,
        claim=f"{claim}.",
        short=claim,
        named=True,
        confidence=confidence,
        kind="runtime",
        contrasts=found.contrasts,
        numbers=found.numbers(lambda group: _number(group, metric, column), rate=column != SERVE_ONE),
        tests=found.tests,
        groups=(first, *(group for group in racing if group is not first)),
        decision=Decision(
            column=column,
            scope=scope,
            winner=runtime_name(first),
            value=value,
            tied=tuple(map(runtime_name, found.tied)),
            unknown=tuple(map(runtime_name, found.unknown)),
            margin=context.analysis_plan.margin,
            left_out=left_out,
        ),
        evidence=joined(
            "outputs checked" if was_compared(first) else "outputs not compared with the framework's",
            "whole calls: bind, Run and copy" if metric == WHOLE else "",
            lost_runs(first),
            "; ".join(f"{omitted.what}: {omitted.why}" for omitted in left_out if "not measured" in omitted.why),
            inside_run(groups),
            *(f"{runtime_name(c.group)} beside {runtime_name(c.base)}: {c.reason}" for c in found.contrasts),
        ),
    )
    yield made, found


def _value(group: InferGroup, metric: str, column: str) -> str:
    """Write its own number, the median as in charts and tables."""
    reached = _number(group, metric, column)
    return f"answers in {quantity(reached, 's')}" if column == SERVE_ONE else f"serves {number(reached)} samples/s"


def _number(group: InferGroup, metric: str, column: str) -> float:
    return statistics.median(group.counted(metric) if column == SERVE_ONE else rates(group, metric))


def _exporters(context: Context, workload: str, groups: Sequence[InferGroup], scope: str) -> Iterator[Finding]:
    """Say for each runtime whether it matters whose file it serves."""
    exported = [group for group in groups if takes_onnx(group)]
    pairs = [
        c for c in context.contrasts.of("serving.exporter", workload) if c.group in exported and c.base in exported
    ]
    for pair in pairs:
        mine, theirs = (people_name(g.cell, [pair.group.cell, pair.base.cell]) for g in (pair.group, pair.base))
        if pair.answer is Answer.DIFFERENT:
            fast, slow = (mine, theirs) if pair.better is pair.group else (theirs, mine)
            claim = f"{slow} takes {number(pair.times.value)} times as long as {fast}"
        elif pair.answer is Answer.SAME:
            claim = f"{mine} is as fast as {theirs} within {percent(pair.comparison.margin)}"
        else:
            claim = f"whether {mine} is as fast as {theirs} is not known{needs_words(pair)}"
        yield Finding(
            subject=workload,
            scope=scope,
            kind="exporter",
            claim=f"{claim}.",
            named=pair.answer is not Answer.OPEN,
            confidence=pair.confidence,
            contrasts=(pair,),
            groups=(pair.group, pair.base),
            evidence=joined(pair.reason, f"{count(pair.pairs, 'pair')} of runs"),
        )
