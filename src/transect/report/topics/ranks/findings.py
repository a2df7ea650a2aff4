"""Findings on ranks: what was near-linear, where it stops, what sums, messages and larger batches do."""

from __future__ import annotations

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import grouped
from transect.analysis.labels import word
from transect.analysis.parallelism import median_of
from transect.analysis.scaling import METRIC, TrainGroup
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import doubt_words
from transect.report.engine.finding import Finding, joined, limited_confidence, lowest_confidence, names
from transect.report.engine.text import clean, count, ends, factor, number, percent, quantity
from transect.report.topics.parallel.findings import strategy_words
from transect.report.topics.ranks.amdahl import SerialPart
from transect.report.topics.ranks.batch_sweeps import BatchRow, BatchSweep, batch_sweeps
from transect.report.topics.ranks.costs import PointToPoint, SumPath, point_to_point, sum_paths
from transect.report.topics.ranks.published_series import GO_WITH_MPI
from transect.report.topics.ranks.series import Problem, RankSeries, problems
from transect.stats.comparisons import Confidence

_RULES = tuple(f"rank.{topic}" for topic in ("near-linear", "stop", "sum-rate", "point-to-point", "larger-batch"))


def asks_for_ranks(context: Context) -> bool:
    """Whether the study asks for what was published of training in Go with MPI."""
    return context.asks_for(GO_WITH_MPI, *_RULES, section="ranks")


def rank_findings(context: Context) -> list[Finding]:
    """What cells of this study say of ranks, and where it asks for that, of what was published of them."""
    groups, asked = context.of("train"), asks_for_ranks(context)
    found = problems(groups, context.network_fits) if asked else []
    # Of messages that nobody asks about the section has a table.
    pairs = _strongest(point_to_point(context)) if context.asks("rank.point-to-point") else []
    return [
        *(_near_linear(problem) for problem in found),
        *(_stops(problem, context) for problem in found),
        *([_sums(paths, asked)] if (paths := sum_paths(groups)) else []),
        *(_messages(pair, asked) for pair in pairs),
        *(_batches(sweep) for sweep in batch_sweeps(groups, context.floors, asked=context.asks("rank.larger-batch"))),
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


def place_words(pair: PointToPoint) -> str:
    """Say where two ways were compared: workload, framework, nodes and ranks, network."""
    cell = pair.group.cell
    ranks = f"{cell.nodes}x{cell.ranks_per_node}" if cell.nodes > 1 else str(cell.ranks)
    network = f" over {cell.network}" if cell.network else ""
    return clean(f"{cell.workload}, {word('framework', cell.framework)}, {ranks} ranks{network}")


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
        confidence=Confidence.CONFIRMED,
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


def _sums(paths: list[SumPath], asked: bool) -> Finding:
    """Say what a sum without a mean is: the mean at as many times the rate as replicas add up."""
    same, unlike = [path for path in paths if path.same], [path for path in paths if path.differs]
    listed = names([f"{_sum_name(path)} with {path.factor} replicas" for path in same], 4)
    if len(same) == len(paths):
        claim = (
            f"summing without a mean multiplies the learning rate by the replicas and does nothing else: {listed} "
            f"{'ends' if len(same) == 1 else 'end'} where the mean at that many times the rate does, and not where the mean does."
        )
        confirmed = all(path.confidence is Confidence.CONFIRMED for path in paths)
        confidence = Confidence.CONFIRMED if confirmed else Confidence.PROVISIONAL
    elif unlike:
        what = names([f"{_sum_name(path)} with {path.factor} replicas" for path in unlike], 4)
        claim = f"{what} does not take the path of the mean at that many times the rate: look at its sum."
        confidence = Confidence.PROVISIONAL
    else:
        claim = "whether a sum without a mean is the mean at a larger rate cannot be told: in some seed the ends lie too close."
        confidence = Confidence.INCONCLUSIVE
    near, far = (max(paths, key=lambda path: path.factor).to_scaled, [d for p in paths for d in p.to_mean])
    return Finding(
        subject="claims" if asked else "study",
        kind="sum-rate",
        named=asked,
        confidence=confidence,
        claim=f"{GO_WITH_MPI}: {claim}" if asked else claim,
        short=claim.partition(": ")[0],
        evidence=joined(
            f"final losses, seed by seed: at most {number(max(d for p in paths for d in p.to_scaled))} of it from the "
            f"scaled rate's, at least {number(min(far))} from the mean's"
            if near and far
            else "no seed is common to all three",
            f"{count(len(paths), 'triple')} of equal starts and batches, up to {max(p.factor for p in paths)} replicas",
            "so its speed-up to a loss with more ranks is in part that of a larger rate",
        ),
    )


def _sum_name(path: SumPath) -> str:
    group = path.summed
    how = "" if group.cell.reduce == "mean" else ", sum"
    return clean(f"{word('framework', group.cell.framework)}, {strategy_words(group)}{how}")


def _strongest(pairs: list[PointToPoint]) -> list[PointToPoint]:
    """Return one pair for each workload, framework and network: on the most ranks within the cores, if any."""
    of_way = grouped(pairs, lambda p: tuple(map(p.group.cell.get, ("workload", "framework", "strategy", "network"))))
    return [max(found, key=lambda p: (not p.result.over_subscribed, p.group.cell.ranks)) for found in of_way.values()]


def _messages(pair: PointToPoint, asked: bool) -> Finding:
    result, way, rival = pair.result, strategy_words(pair.group), strategy_words(pair.collective)
    published = f"; published on as many ranks: {factor(pair.published)} times" if pair.published and asked else ""
    lead = f"{GO_WITH_MPI}, point-to-point beside the collective: " if asked else ""
    takes = f"{way} takes {factor(result.cost.value)} times ({ends(result.cost, factor)}) as long for a sample"
    return Finding(
        subject="claims" if asked else "study",
        kind="point-to-point",
        named=True,
        confidence=limited_confidence(result.confidence, pair.group, pair.collective),
        contrasts=(result,),
        groups=(pair.group, pair.collective),
        short=f"{place_words(pair)}: {takes}{doubt_words(result)}",
        claim=f"{lead}{takes} as {rival} ({place_words(pair)}){doubt_words(result)}{published}.",
        evidence=joined(
            f"waiting for messages in a step {quantity(_waited(pair.group), 's')} and {quantity(_waited(pair.collective), 's')}",
            result.reason,
        ),
    )


def _waited(group: TrainGroup) -> float | None:
    return median_of(group, "communication_time")


def _batches(sweep: BatchSweep) -> Finding:
    cell, rows = sweep.rows[0].group.cell, sweep.rows
    low, high = rows[0], rows[-1]
    parts = [word("framework", cell.framework), strategy_words(low.group), count(cell.ranks, "rank")]
    parts += [low.group.kind.words] if low.group.kind.words else []
    scope = clean(", ".join(parts))
    epochs = f"batch {high.batch} instead of {low.batch} waits "
    if None in (high.waited_s, low.waited_s):
        epochs += "a part of an epoch that is not told"
    else:
        epochs += f"{quantity(high.waited_s, 's')} of an epoch for messages instead of {quantity(low.waited_s, 's')}"
    confidence, quality = _quality(sweep)
    return Finding(
        subject=str(cell.workload),
        scope=scope,
        kind="larger-batch",
        confidence=confidence,
        contrasts=() if sweep.result is None else (sweep.result,),
        claim=f"{epochs}; {quality}.",
        evidence=joined(
            "; ".join(f"batch {row.batch}: {_row_words(row)}" for row in rows),
            sweep.result.reason if sweep.result is not None else "",
        ),
    )


def _quality(sweep: BatchSweep) -> tuple[Confidence, str]:
    """Return the confidence, and what of the saving is left at equal quality."""
    reached = [row for row in sweep.rows if row.reached]
    if len(reached) < 2:
        missing = names([f"batch {row.batch}" for row in sweep.rows if not row.reached], 4)
        return (
            Confidence.INCONCLUSIVE,
            f"at equal quality nothing is known: {missing} did not reach the target in every run",
        )
    best, result = sweep.best, sweep.result
    if best is None or result is None or result.better is not best.group:
        return Confidence.INCONCLUSIVE, "which batch waits least until it has learnt as much is not known"
    saving = f"batch {best.batch} waits least, {factor(result.cost.value)} times what batch {reached[0].batch} does"
    if best is reached[0]:
        saving = f"the smallest batch that reaches the target, {best.batch}, waits least"
    return limited_confidence(result.confidence, best.group), f"until it has learnt as much, {saving}"


def _row_words(row: BatchRow) -> str:
    if not row.reached:
        return "target not reached"
    values = sorted(row.to_quality.values())
    steps = sorted(row.steps.values())
    return (
        f"{number(steps[len(steps) // 2])} steps and {quantity(values[len(values) // 2], 's')} of waiting to the target"
    )
