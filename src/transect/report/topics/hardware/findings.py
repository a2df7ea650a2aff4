"""Findings on hardware: what limits the best inference cell, and which benchmarks to mistrust."""

from __future__ import annotations

from collections import Counter

from transect.analysis.hardware import BenchmarkValue
from transect.analysis.labels import people_name
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, median, names
from transect.report.engine.text import clean, clipped, count, percent, quantity
from transect.report.topics.roofline.facts import RooflinePoint, roofline_points
from transect.report.topics.serving.facts import faithful_groups
from transect.stats.comparisons import Confidence

_SHOWN = 3
_CLIP = 240
_METRIC = "throughput"


def hardware_findings(context: Context) -> list[Finding]:
    """Return the limit of each workload's best inference cell, and the runs that are not valid."""
    limits = [finding for workload in context.workloads("infer") for finding in _limit(context, workload)]
    return [*limits, *_invalid(context)]


def _source(point: RooflinePoint) -> str:
    """Say what a point's operations were counted from: an inference record tells."""
    return str(point.group.ok[0].details.get("costs_from", "layers"))


def _limit(context: Context, workload: str) -> list[Finding]:
    """Compare the cell with the highest throughput with its roofline; empty without one."""
    groups = [g for g in faithful_groups(context, workload) if g.values(_METRIC)]
    if not groups:
        return []
    points, _ = roofline_points(groups, context.rates)
    if not points:
        return []

    best = max(points, key=lambda point: (median(point.group, _METRIC) or 0.0, point.group.cell.id))
    bound = best.bound
    side = "the processor's arithmetic speed" if bound.kind == "arithmetic" else f"what {bound.kind} allows"
    name = people_name(
        best.group.cell, [group.cell for group in groups], always=("threads", "batch"), never=("exporter",)
    )
    short = f"{name} runs at {percent(best.share)} of {side}"
    confidence = Confidence.PROVISIONAL
    if best.share > 1:
        short += ", so the bound or the count of operations is off"
        confidence = Confidence.INCONCLUSIVE
    evidence = (
        f"the fastest of {count(len(points), 'cell')} with a bound; run {quantity(best.time.median, 's')}, bound "
        f"{quantity(bound.time_s, 's')} from {quantity(bound.flops.value, 'FLOP/s')} ({bound.flops.benchmark}) and "
        f"{quantity(bound.bandwidth.value, 'B/s')} ({bound.bandwidth.benchmark}) with "
        f"{count(best.threads, 'thread')}; operations and bytes from the {_source(best)}"
    )
    return [
        Finding(
            subject=workload,
            claim=f"{short}.",
            short=short,
            evidence=evidence,
            confidence=confidence,
            kind="limit",
            named=True,
            groups=(best.group,),
        )
    ]


def _invalid(context: Context) -> list[Finding]:
    """Name runs with a result that their own log contradicts; the reason holds both numbers."""
    runs: dict[str, BenchmarkValue] = {}
    for value in context.benchmark_values:
        runs.setdefault(value.run, value)
    wrong = [value for value in runs.values() if value.status == "invalid"]
    if not wrong:
        return []
    verb = "is" if len(wrong) == 1 else "are"
    claim = f"{len(wrong)} of {count(len(runs), 'benchmark run')} {verb} invalid"
    others = Counter(v.status for v in runs.values() if not v.valid and v.status != "invalid")
    if others:
        listed = [f"{amount} {clean(status)}" for status, amount in sorted(others.items())]
        claim += f", besides {names(listed, len(listed))}"
    claim += ": none of their numbers is in a chart or a bound."
    why = [_reason(value) for value in wrong[:_SHOWN]]
    if len(wrong) > _SHOWN:
        why.append(f"{len(wrong) - _SHOWN} more in the section on hardware")
    return [
        Finding(subject="study", claim=claim, evidence=joined(*why), confidence=Confidence.CONFIRMED, kind="hardware")
    ]


def _reason(value: BenchmarkValue) -> str:
    return f"{clean(value.benchmark)} ({clean(value.system)}): {clipped(value.reason, _CLIP) or 'no reason given'}"
