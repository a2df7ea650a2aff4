"""Findings on ranks: what was near-linear, where it stops, what sums, messages and larger batches do."""

from __future__ import annotations

from dataclasses import replace

from transect.analysis.groups import Floors
from transect.analysis.parallelism import median_of
from transect.analysis.scaling import TrainGroup
from transect.analysis.side_by_side import under
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, limited_confidence, lowest_confidence, names
from transect.report.engine.text import clean, count, ends, factor, number, percent, quantity
from transect.report.topics.parallel.findings import strategy_words
from transect.report.topics.ranks.amdahl import SerialPart
from transect.report.topics.ranks.batch_sweeps import BatchRow, BatchSweep, batch_sweeps
from transect.report.topics.ranks.costs import PointToPoint, SumPath, point_to_point, sum_paths
from transect.report.topics.ranks.published_series import GO_WITH_MPI
from transect.report.topics.ranks.series import Problem, RankSeries, problems
from transect.stats.comparisons import Comparison, Confidence, Verdict, compare
from transect.stats.verdicts import Chance

_RULES = tuple(f"rank.{topic}" for topic in ("near-linear", "stop", "sum-rate", "point-to-point", "larger-batch"))


def asks_for_ranks(context: Context) -> bool:
    """Whether the study asks for what was published of training in Go with MPI."""
    return context.asks_for(GO_WITH_MPI, *_RULES, section="ranks")


def rank_findings(context: Context) -> list[Finding]:
    """What cells of this study say of ranks, and where it asks for that, of what was published of them."""
    groups, asked = context.of("train"), asks_for_ranks(context)
    found = problems(groups, context.network_fits) if asked else []
    return [
        *(_near_linear(problem) for problem in found),
        *(_stops(problem, context.floors) for problem in found),
        *([_sums(paths, asked)] if (paths := sum_paths(groups)) else []),
        *(_messages(pair, asked) for pair in _strongest(point_to_point(groups, context.floors))),
        *(_batches(sweep) for sweep in batch_sweeps(groups, context.floors)),
    ]


def series_name(series: RankSeries) -> str:
    """Name a line: what was published of it, or its framework, strategy, kind and network."""
    if series.published is not None:
        return f"published, {series.published.way}"
    group = series.group
    if group is None:
        raise ValueError("a measured series has groups")
    cell = group.cell
    parts = [cell.framework, strategy_words(group), group.kind.words, cell.network or ""]
    parts += [f"{cell.threads} threads each"] if cell.threads > 1 else []
    return clean(" · ".join(part for part in parts if part))


def serial_words(serial: SerialPart) -> str:
    """Write a serial share with its interval, or why it cannot be told."""
    if serial.share is None:
        return f"cannot be told: {serial.reason}"
    return f"{percent(serial.share)} (95 % interval {percent(serial.low)} to {percent(serial.high)})"


def place_words(pair: PointToPoint) -> str:
    """Say where two ways were compared: workload, framework, nodes and ranks, network."""
    cell = pair.group.cell
    ranks = f"{cell.nodes}x{cell.ranks_per_node}" if cell.nodes > 1 else str(cell.ranks)
    network = f" over {cell.network}" if cell.network else ""
    return clean(f"{cell.workload}, {cell.framework}, {ranks} ranks{network}")


def _near_linear(problem: Problem) -> Finding:
    """Check "near-linear" by the published minutes themselves, and say what ran here."""
    speed_ups, serials = [], []
    for series in problem.published:
        stop = series.stop
        speed_ups.append(
            f"{series.published.way if series.published else ''} from {stop.base} to {stop.fastest} ranks "
            f"{factor(stop.speed_up)} times as fast where {factor(stop.ideal)} would be linear "
            f"({percent(stop.efficiency)})"
        )
        serials.append(f"{series.published.way if series.published else ''} {serial_words(series.serial)}")
    able = [series for series in problem.measured if not _crowded(series)]
    best = max(able, key=lambda series: series.stop.speed_up, default=None)
    here = "; here every number of ranks beyond the first shares cores, so nothing is claimed of it"
    if best is not None and best.stop.fastest == best.stop.base:
        here = "; here no number of ranks within the cores is faster than the first"
    elif best is not None and not best.stop.faster:
        here = "; here runs within the cores are too far apart for any number of ranks to be faster than the first"
    elif best is not None:
        stop = best.stop
        here = (
            f"; here {series_name(best)} is {factor(stop.speed_up)} times as fast on {stop.fastest} ranks as on "
            f"{stop.base} ({percent(stop.efficiency)})"
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


def _beside(series: RankSeries, floors: Floors) -> list[Comparison]:
    """Compare the fastest number of ranks with those beside it, within the cores: one of all that it may have been."""
    points = [point for point in series.points if not point.hollow]
    at = next((n for n, point in enumerate(points) if point.ranks == series.stop.fastest), None)
    comparisons = []
    for neighbour in () if at is None else (*points[max(0, at - 1) : at], *points[at + 1 : at + 2]):
        fastest = points[at or 0]
        if fastest.group is None or neighbour.group is None:
            continue
        cell = fastest.group.cell
        floor = floors.get(cell.stage, cell.workload, "step_time", fastest.group.kind)
        comparison = compare(fastest.times, neighbour.times, floor=floor)
        if comparison is not None:
            comparisons.append(under(replace(comparison, n_candidates=len(points)), fastest.group, neighbour.group))
    return comparisons


def _stops(problem: Problem, floors: Floors) -> Finding:
    """Say where the fastest series stops, and what explains it."""
    best = max(problem.measured, key=lambda series: (not _crowded(series), series.stop.speed_up))
    stop, group = best.stop, best.group
    crowded = _crowded(best)
    repeats = min(len(point.times) for point in best.points)
    beside = [] if crowded else _beside(best, floors)
    apart = stop.apart and all(comparison.verdict is Verdict.BETTER for comparison in beside)
    confidence = Confidence.INCONCLUSIVE
    if not crowded and best.serial.share is not None and apart:
        confidence = limited_confidence(lowest_confidence(comparison.confidence for comparison in beside), group)
    claim = (
        f"{series_name(best)} is fastest on {count(stop.fastest, 'rank')}, {factor(stop.speed_up)} times as fast as on "
        f"{stop.base}, and {stop.reason}"
    )
    if stop.fastest == stop.base:
        claim = f"{series_name(best)} is on no number of ranks faster than on {stop.base}: {stop.reason}"
    if not apart:
        claim += "; its runs are not told apart from those of a number of ranks beside it, so this may be noise"
    lacking = " Ranks beyond the cores show no speed-up; more cores would tell." if crowded else ""
    published = "; ".join(
        f"published, {series.published.way}: fastest on {series.stop.fastest} of up to {series.points[-1].ranks} ranks"
        for series in problem.published
        if series.published is not None
    )
    published = published if not problem.differs else ""
    return Finding(
        subject=problem.workload,
        kind="rank-stop",
        named=True,
        confidence=confidence,
        claim=f"{claim}.{lacking}",
        tests=tuple(
            Chance(p=decision.p, p_other=decision.p_other, n_comparisons=comparison.n_comparisons, claimed=apart)
            for comparison in beside
            if (decision := comparison.decision) is not None
        ),
        evidence=joined(
            f"serial part within the cores: {serial_words(best.serial)}",
            f"{count(repeats, 'run')} of each number of ranks at least",
            f"beside the nearest: {beside[0].reason}" if beside else "",
            published,
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
    return clean(f"{group.cell.framework} {strategy_words(group)}{how}")


def _strongest(pairs: list[PointToPoint]) -> list[PointToPoint]:
    """Return one pair for each workload, framework and network: on the most ranks within the cores, if any."""
    best: dict[tuple[object, ...], PointToPoint] = {}
    for pair in pairs:
        cell = pair.group.cell
        key = (cell.workload, cell.framework, cell.strategy, cell.network)
        held = best.get(key)
        if held is None or _place(pair) > _place(held):
            best[key] = pair
    return list(best.values())


def _place(pair: PointToPoint) -> tuple[bool, int]:
    return not pair.crowded, pair.group.cell.ranks


def _messages(pair: PointToPoint, asked: bool) -> Finding:
    result = pair.result
    doubt = "" if result.shown else "; these runs cannot tell the two apart"
    if pair.crowded:
        doubt = "; its ranks share cores, so this decides nothing"
    published = f"; published on as many ranks: {factor(pair.published)} times" if pair.published and asked else ""
    lead = f"{GO_WITH_MPI}, point-to-point beside the collective: " if asked else ""
    return Finding(
        subject="claims" if asked else "study",
        kind="point-to-point",
        named=True,
        confidence=limited_confidence(result.confidence, pair.group, pair.collective),
        comparisons=result.comparisons,
        groups=(pair.group, pair.collective),
        short=f"{place_words(pair)}: {strategy_words(pair.group)} takes "
        f"{factor(result.ratio.value)} times ({ends(result.ratio, factor)}) as long for a sample{doubt}",
        claim=f"{lead}{strategy_words(pair.group)} takes "
        f"{factor(result.ratio.value)} times ({ends(result.ratio, factor)}) as long for a sample as "
        f"{strategy_words(pair.collective)} ({place_words(pair)}){doubt}{published}.",
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
    parts = [cell.framework, strategy_words(low.group), count(cell.ranks, "rank")]
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
        comparisons=() if sweep.crowded or sweep.comparison is None else (sweep.comparison,),
        claim=f"{epochs}; {quality}.",
        evidence=joined(
            "; ".join(f"batch {row.batch}: {_row_words(row)}" for row in rows),
            sweep.comparison.reason if sweep.comparison is not None else "",
            "ranks share cores" if sweep.crowded else "",
        ),
    )


def _quality(sweep: BatchSweep) -> tuple[Confidence, str]:
    """Return the confidence, and what of the saving is left at equal quality."""
    reached = [row for row in sweep.rows if row.reached]
    if len(reached) < 2:
        missing = names([f"batch {row.batch}" for row in sweep.rows if not row.reached], 4)
        return (
            Confidence.INCONCLUSIVE,
            f"at equal quality nothing can be told: {missing} did not reach the target in every run",
        )
    if sweep.best is None or sweep.comparison is None or sweep.comparison.verdict is not Verdict.BETTER:
        return (Confidence.INCONCLUSIVE, "until it has learnt as much, these runs cannot tell the batches apart")
    best, times = sweep.best, factor(1 / sweep.comparison.factor)
    saving = f"batch {best.batch} waits least, {times} times what batch {reached[0].batch} does"
    if best is reached[0]:
        saving = f"the smallest batch that reaches the target, {best.batch}, waits least"
    return (
        Confidence.INCONCLUSIVE if sweep.crowded else limited_confidence(sweep.comparison.confidence, best.group)
    ), f"until it has learnt as much, {saving}"


def _row_words(row: BatchRow) -> str:
    if not row.reached:
        return "target not reached"
    values = sorted(row.to_quality.values())
    steps = sorted(row.steps.values())
    return (
        f"{number(steps[len(steps) // 2])} steps and {quantity(values[len(values) // 2], 's')} of waiting to the target"
    )
