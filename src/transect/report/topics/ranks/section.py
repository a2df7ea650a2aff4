"""Section: trainings over ranks beside published minutes, on the same axes, and where each stops."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.parallelism import median_of
from transect.report.engine.blocks import Chip, Explained, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.charts.chart import Point, Series, line_chart
from transect.report.engine.charts.inks import MUTED
from transect.report.engine.charts.theme import Style
from transect.report.engine.columns import ACCURACY, NOT_TOLD
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import verdict_chip
from transect.report.engine.text import clean, count, factor, in_unit, number, percent, scale_for, with_ends
from transect.report.topics.parallel.findings import strategy_words
from transect.report.topics.ranks.batch_sweeps import BatchRow, BatchSweep, batch_sweeps, middle_of
from transect.report.topics.ranks.costs import PointToPoint, SumPath, point_to_point, sum_paths
from transect.report.topics.ranks.findings import asks_for_ranks, place_words, serial_words, series_name
from transect.report.topics.ranks.series import Problem, RankSeries, problems

# Lines of one chart, the published ones among them: more cannot be told apart.
_MAX_LINES = 12
_PUBLISHED = {"Allreduce": Style(MUTED, "square", (6, 3)), "Send/Recv": Style(MUTED, "diamond", (2, 2))}


def ranks_body(context: Context) -> Iterator[Part]:
    """Draw each problem with what was published of it; list stops, sums, messages and batches."""
    groups, asked = context.of("train"), asks_for_ranks(context)
    found = problems(groups, context.network_fits) if asked else []
    pairs, sums = point_to_point(context), sum_paths(groups)
    batches = list(batch_blocks(context))
    if not any((found, pairs, sums, batches)):
        return
    if found:
        yield Lead(
            "Parallel training in Go with MPI (2022) as it was published, and here: each line is scaled to a point of its "
            "own, and only its shape is compared."
        )
    else:
        yield Lead("Messages, sums without a mean and larger batches, each beside the same training without.")
    for problem in found:
        yield Heading(problem.name)
        yield from _problem(context, problem)
    if pairs:
        yield Heading("Point-to-point beside the collective")
        yield _messages(pairs, asked)
    if sums:
        yield Heading("A sum without a mean")
        yield _sums(sums)
        yield Explained(
            "Distances are relative and of the final training loss, the largest over the seeds that all three have. On the "
            "mean's path at as many times the rate: a hundred times nearer to it than to the mean's own, in every seed."
        )
    if batches:
        yield Heading("Larger batches")
        yield from batches


def _problem(context: Context, problem: Problem) -> Iterator[Part]:
    made = _generated(context, problem.workload)
    if made:
        yield note(made)
    if problem.differs:
        yield note(
            f"This is not the work that was published: {', '.join(problem.differs)}. How a sample's time changes with the ranks can be "
            "compared; minutes, losses and accuracies cannot."
        )
    every = [*problem.published, *problem.measured]
    yield _chart(context, problem, every)
    yield table(
        every,
        [
            words("Series", series_name),
            digits("Base (ranks)", lambda row: row.stop.base),
            digits("Fastest (ranks)", lambda row: row.stop.fastest),
            digits("Speed-up", lambda row: row.stop.speed_up, factor),
            digits("Efficiency", lambda row: row.stop.efficiency, percent),
            words("Serial part", lambda row: serial_words(row.serial)),
            words("Why it gets no faster", lambda row: clean(row.stop.reason)),
            words("", _mark),
        ],
        caption=f"{problem.workload}: how much faster on how many ranks, with the base of each, and where it stops",
    )
    yield Explained(
        "A sample's time, a step over its global batch, with an equal batch on each rank that trains. Serial part: what "
        "more ranks do not shorten, by Amdahl's law up to the fastest point, over the ranks that train; its interval is "
        "Fieller's. Of a series that runs past the cores only what is within them counts."
    )


def _generated(context: Context, workload: str) -> str:
    """Say that the data are a twin of the published ones; empty where they are not."""
    for group in context.of("dataset", workload):
        for record in group.ok:
            if record.details.get("generated"):
                return (
                    f"The images here are a synthetic twin of the published ones, as large each: "
                    f"{clean(str(record.details.get('source', 'generated')))}. What it reaches says nothing of the real ones."
                )
    return ""


def _mark(series: RankSeries) -> Chip | None:
    if series.published is not None:
        return Chip("published")
    hollow = [point.ranks for point in series.points if point.hollow]
    return Chip(f"shares cores from {hollow[0]} ranks on", "warn") if hollow else None


def _chart(context: Context, problem: Problem, every: list[RankSeries]) -> Part:
    lines, rows = [], []
    for series in every:
        scaled, _ = series.scaled(problem.first)
        style = _PUBLISHED[series.published.way] if series.published else _style(context, series)
        points = [Point(x=p.ranks, repeats=times, hollow=p.hollow, about=p) for p, times in scaled]
        lines.append(Series(name=series_name(series), style=style, points=points))
        rows += [(series, p, place.y) for (p, _), place in zip(scaled, points, strict=True)]
    ranks = sorted({row[1].ranks for row in rows})
    return line_chart(
        lines,
        rows,
        [
            words("Series", lambda row: series_name(row[0])),
            digits("Ranks", lambda row: row[1].ranks),
            digits("Times its first", lambda row: row[2], factor),
            digits("As it is", lambda row: _as_it_is(row[0], row[1].time)),
            digits("Runs", lambda row: len(row[1].times)),
            words("", lambda row: Chip("over-subscribed", "warn") if row[1].hollow else None),
        ],
        title="Time for the same samples over ranks",
        x="ranks",
        y=f"times its own at {problem.first} ranks, or at its first",
        most=_MAX_LINES,
        name=f"published-ranks-{problem.workload}",
        alt=f"{problem.name}: time for the same samples on {ranks[0]} to {ranks[-1]} ranks, "
        f"{len(problem.published)} published and {len(problem.measured)} measured lines, each scaled to itself.",
        notes=["Hollow symbols: ranks share cores, no claim." if any(row[1].hollow for row in rows) else ""],
    )


def _style(context: Context, series: RankSeries) -> Style:
    return context.style(series.group) if series.group is not None else Style(MUTED)


def _as_it_is(series: RankSeries, time: float) -> str:
    """Write a published time in minutes of a training, a measured one in seconds of a sample."""
    return f"{number(time)} min" if series.published else f"{in_unit('s')(time)} a sample"


def _messages(pairs: list[PointToPoint], asked: bool) -> Part:
    waited = "communication_time"
    return table(
        pairs,
        [
            words("Where", place_words),
            words("Point-to-point", lambda row: strategy_words(row.group)),
            words("Collective", lambda row: strategy_words(row.collective)),
            digits("Waits (step)", lambda row: median_of(row.group, waited), in_unit("s"), NOT_TOLD),
            digits("Collective waits", lambda row: median_of(row.collective, waited), in_unit("s"), NOT_TOLD),
            digits("Time of a sample, ratio", lambda row: with_ends(row.result.cost)),
            *([digits("Published ratio", lambda row: row.published, factor)] if asked else []),
            words("", lambda row: verdict_chip(row.result)),
        ],
        caption="Point-to-point over collective: time of a sample on equal ranks"
        + (", and the published minutes' ratio, of equal work" if asked else ""),
    )


def _sums(paths: list[SumPath]) -> Part:
    def ending(path: SumPath) -> Chip:
        if path.same:
            return Chip("the scaled rate's path", "good")
        return Chip("another path", "bad") if path.differs else Chip("cannot be told")

    return table(
        paths,
        [
            words("Workload", lambda row: row.summed.cell.workload),
            words("Sum", lambda row: f"{row.summed.cell.framework} {strategy_words(row.summed)}"),
            digits("Replicas", lambda row: row.factor),
            digits("Loss ends at", lambda row: median_of(row.summed, "final_loss")),
            digits("Mean at so many times the rate", lambda row: median_of(row.scaled, "final_loss")),
            digits("Mean at the rate", lambda row: median_of(row.mean, "final_loss")),
            digits("From the scaled rate's", lambda row: max(row.to_scaled, default=None)),
            digits("From the mean's", lambda row: max(row.to_mean, default=None)),
            digits("Seeds", lambda row: len(row.to_scaled)),
            words("", ending),
        ],
        caption="A sum beside the mean, and beside the mean at as many times the rate as replicas are added",
    )


def batch_blocks(context: Context) -> Iterator[Part]:
    """List each sweep of batches on several ranks; nothing without any."""
    found = batch_sweeps(context.of("train"), context.floors)
    for sweep in found:
        yield _table(sweep)
    if found:
        yield Explained(
            "Waiting is the part of a step in which a rank does nothing but wait for messages. To the target: over the steps "
            "until the quality target was reached, so what more steps cost is in it; empty where a run did not reach it."
        )


def _table(sweep: BatchSweep) -> Part:
    cell = sweep.rows[0].group.cell
    epoch = scale_for([row.epoch_s for row in sweep.rows], "s")
    waited = scale_for([row.waited_s for row in sweep.rows], "s")
    target = scale_for([middle_of(row.to_quality) for row in sweep.rows], "s")
    caption = f"{cell.workload}, {cell.framework}, {strategy_words(sweep.rows[0].group)}, {count(cell.ranks, 'rank')}"
    return table(
        sweep.rows,
        [
            digits("Batch", lambda row: row.batch),
            digits(f"Epoch's steps ({epoch.unit})", lambda row: row.epoch_s, epoch),
            digits(f"Waiting in them ({waited.unit})", lambda row: row.waited_s, waited),
            digits("Share of a step", lambda row: row.share, percent, NOT_TOLD),
            ACCURACY,
            digits("Steps to the target", lambda row: middle_of(row.steps)),
            digits(f"Waiting to the target ({target.unit})", lambda row: middle_of(row.to_quality), target),
            words("", lambda row: _batch_mark(sweep, row)),
        ],
        caption=clean(f"{caption}: what a larger batch leaves of the messages"),
    )


def _batch_mark(sweep: BatchSweep, row: BatchRow) -> Chip | None:
    if row.group.over_subscribed:
        return Chip("over-subscribed", "warn")
    if not row.reached:
        return Chip("target not reached", "warn")
    return Chip("waits least to the target") if row is sweep.best else None
