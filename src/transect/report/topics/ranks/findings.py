"""Findings on ranks: what was near-linear, where it stops, what sums, messages and larger batches do."""

from __future__ import annotations

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.labels import word
from transect.analysis.scaling import METRIC
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, limited_confidence, lowest_confidence, names
from transect.report.engine.text import clean, count, factor, percent
from transect.report.topics.parallel.words import strategy_words
from transect.report.topics.ranks.amdahl import SerialPart
from transect.report.topics.ranks.batches import batch_sweeps, batches_finding
from transect.report.topics.ranks.messages import messages_finding, point_to_point, strongest
from transect.report.topics.ranks.published_series import GO_WITH_MPI
from transect.report.topics.ranks.series import Problem, RankSeries, problems
from transect.report.topics.ranks.sums import sum_paths, sums_finding
from transect.stats.comparisons import Confidence

_RULES = tuple(f"rank.{topic}" for topic in ("near-linear", "stop", "sum-rate", "point-to-point", "larger-batch"))


def asks_for_ranks(context: Context) -> bool:
    """Whether the study asks for what was published of training in Go with MPI."""
    return context.asks_for(GO_WITH_MPI, *_RULES, section="ranks")


def rank_findings(context: Context) -> list[Finding]:
    """What cells of this study say of ranks, and where it asks for that, of what was published of them."""
    groups, asked = context.of("train"), asks_for_ranks(context)
    found = problems(groups, context.network_fits, context.works) if asked else []
    # Of messages that nobody asks about the section has a table.
    pairs = strongest(point_to_point(context)) if context.asks("rank.point-to-point") else []
    return [
        *(_near_linear(problem) for problem in found),
        *(_stops(problem, context) for problem in found),
        *([sums_finding(paths, asked)] if (paths := sum_paths(groups)) else []),
        *(messages_finding(pair, asked) for pair in pairs),
        *(
            batches_finding(sweep)
            for sweep in batch_sweeps(groups, context.floors, asked=context.asks("rank.larger-batch"))
        ),
    ]


def series_name(series: RankSeries) -> str:
    """Name a line: what was published of it, or its framework, strategy, kind and network."""
    if series.published is not None:
        return f"published, {series.published.way}"
    group = series.group
    if group is None:
        raise ValueError("a measured series has groups")
    cell = group.cell
    parts = [word("framework", cell.framework), strategy_words(group), group.kind.words, cell.network or ""]
    parts += [f"{cell.threads} threads each"] if cell.threads > 1 else []
    return clean(" · ".join(part for part in parts if part))


def serial_words(serial: SerialPart) -> str:
    """Write a serial share with its interval, or why it cannot be told."""
    if serial.share is None:
        return f"not known: {serial.reason}"
    return f"{percent(serial.share)} (95 % interval {percent(serial.low)} to {percent(serial.high)})"


def _near_linear(problem: Problem) -> Finding:
    """Check "near-linear" by the published minutes themselves, and say what ran here."""
    speed_ups, serials = [], []
    for series in problem.published:
        stop, way = series.stop, series.published.way if series.published else ""
        speed_ups.append(
            f"{way} from {stop.base} to {stop.fastest} ranks {factor(stop.speed_up)} times as fast where "
            f"{factor(stop.ideal)} would be linear ({percent(stop.efficiency)})"
        )
        serials.append(f"{way} {serial_words(series.serial)}")
    able = [series for series in problem.measured if not _crowded(series)]
    best = max(able, key=lambda series: series.stop.speed_up, default=None)
    here = "; here every number of ranks beyond the first shares cores, so nothing is claimed of it"
    if best is not None:
        stop = best.stop
        here = f"{series_name(best)} is {factor(stop.speed_up)} times as fast on {stop.fastest} ranks as on {stop.base}"
        here = (
            f"; here {here} ({percent(stop.efficiency)})"
            if stop.faster
            else "; here no number of ranks within the cores is known to be faster than the first"
        )
    if problem.differs:
        here += f"; here is other work: {', '.join(problem.differs)}"
    return Finding(
        subject="claims",
        kind="near-linear",
        named=True,
        # What was published is arithmetic; what is faster here was put to no test.
        confidence=Confidence.PROVISIONAL if best is not None and best.stop.faster else Confidence.CONFIRMED,
        short=f"{problem.name}: the published minutes are not near-linear{here}",
        claim=f"{GO_WITH_MPI}, near-linear to 16 nodes: its own minutes are not. {problem.name}: "
        f"{names(speed_ups, 4)}{here}.",
        evidence=joined(
            "what was published is arithmetic on its labels, which are single runs",
            f"serial part of the published times up to their fastest, by Amdahl's law: {'; '.join(serials)}",
            "a rank's batch stays, so the global batch, and with a sum the rate, grows with the ranks",
        ),
    )


def _crowded(series: RankSeries) -> bool:
    """Whether it has no two numbers of ranks within the cores."""
    return len([point for point in series.points if not point.hollow]) < 2


def _beside(series: RankSeries, context: Context) -> list[Contrast]:
    """Compare the fastest number of ranks with those beside it, within the cores: one of all that it may have been."""
    points = [point for point in series.points if not point.hollow]
    at = next((n for n, point in enumerate(points) if point.ranks == series.stop.fastest), None)
    near = () if at is None else (*points[max(0, at - 1) : at], *points[at + 1 : at + 2])
    fastest, asked, k = points[at or 0].group, context.asks("rank.stop"), len(points)
    found = [
        contrast(fastest, other, context.floors, METRIC, varies="ranks", candidates=k, asked=asked)
        for other in (neighbour.group for neighbour in near)
        if fastest is not None and other is not None
    ]
    return [each for each in found if each is not None]


def _stops(problem: Problem, context: Context) -> Finding:
    """Say where the fastest series stops, and what explains it."""
    best = max(problem.measured, key=lambda series: (not _crowded(series), series.stop.speed_up))
    stop, group = best.stop, best.group
    crowded = _crowded(best)
    beside = [] if crowded else _beside(best, context)
    apart = all(each.better is each.group for each in beside)
    confidence = Confidence.INCONCLUSIVE
    if not crowded and best.serial.share is not None and apart:
        confidence = limited_confidence(lowest_confidence(each.confidence for each in beside), group)
    claim = (
        f"{series_name(best)} is fastest on {count(stop.fastest, 'rank')}, {factor(stop.speed_up)} times as fast as on "
        f"{stop.base}, and {stop.reason}"
    )
    if stop.fastest == stop.base:
        claim = f"{series_name(best)} is on no number of ranks faster than on {stop.base}: {stop.reason}"
    if not apart:
        claim += "; whether it is faster there than on a number of ranks beside it is not known"
    lacking = " Ranks beyond the cores show no speed-up; more cores would tell." if crowded else ""
    published = [
        f"published, {series.published.way}: fastest on {series.stop.fastest} of up to {series.points[-1].ranks} ranks"
        for series in problem.published
        if series.published is not None and not problem.differs
    ]
    return Finding(
        subject=problem.workload,
        kind="rank-stop",
        named=True,
        confidence=confidence,
        claim=f"{claim}.{lacking}",
        contrasts=tuple(beside),
        evidence=joined(
            f"serial part within the cores: {serial_words(best.serial)}",
            f"beside the nearest: {beside[0].reason}" if beside else "",
            *published,
        ),
    )
