"""Section: trainings over ranks beside published minutes, on the same axes, and where each stops."""

from __future__ import annotations

from collections.abc import Iterator

from transect.report.engine.blocks import Chip, Explained, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.charts.chart import Point, Series, line_chart
from transect.report.engine.charts.inks import MUTED
from transect.report.engine.charts.theme import Style
from transect.report.engine.context import Context
from transect.report.engine.finding import names
from transect.report.engine.text import clean, count, factor, in_unit, number, percent
from transect.report.topics.ranks.batches import batch_blocks
from transect.report.topics.ranks.findings import asks_for_ranks, serial_words, series_name
from transect.report.topics.ranks.messages import messages_table, point_to_point
from transect.report.topics.ranks.series import Problem, RankSeries, problems
from transect.report.topics.ranks.sums import sum_paths, sums_table

# Lines of one chart, the published ones among them: more cannot be told apart.
_MAX_LINES = 12
_PUBLISHED = {"Allreduce": Style(MUTED, "square", (6, 3)), "Send/Recv": Style(MUTED, "diamond", (2, 2))}


def ranks_body(context: Context) -> Iterator[Part]:
    """Draw each problem with what was published of it; list stops, sums, messages and batches."""
    groups, asked = context.of("train"), asks_for_ranks(context)
    found = problems(groups, context.network_fits, context.works) if asked else []
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
        yield from _problem_parts(context, problem)
    if pairs:
        yield Heading("Point-to-point beside the collective")
        yield messages_table(pairs)
    if sums:
        yield Heading("A sum without a mean")
        yield sums_table(sums)
        yield Explained(
            "Distances are relative and of the final training loss, the largest over the seeds that all three have. On the "
            "mean's path at as many times the rate: a hundred times nearer to it than to the mean's own, in every seed."
        )
    if batches:
        yield Heading("Larger batches")
        yield from batches


def _problem_parts(context: Context, problem: Problem) -> Iterator[Part]:
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
        scaled = series.scaled(problem.first)
        style = _PUBLISHED[series.published.way] if series.published else Style(MUTED)
        style = context.style(series.group) if series.group is not None else style
        points = [Point(x=p.ranks, repeats=times, hollow=p.hollow, about=p) for p, times in scaled]
        lines.append(Series(name=series_name(series), style=style, points=points))
        rows += [(series, p, place.y) for (p, _), place in zip(scaled, points, strict=True)]
    least = [
        f"{count(series.stop.fastest, 'rank')} ({series.published.way})"
        for series in problem.published
        if series.published
    ]
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
        title=f"Published minutes are least on {names(least)}",
        x="ranks",
        y=f"times its own at {problem.first} ranks, or at its first",
        most=_MAX_LINES,
        name=f"published-ranks-{problem.workload}",
        notes=["Hollow symbols: ranks share cores, no claim." if any(row[1].hollow for row in rows) else ""],
    )


def _as_it_is(series: RankSeries, time: float) -> str:
    """Write a published time in minutes of a training, a measured one in seconds of a sample."""
    return f"{number(time)} min" if series.published else f"{in_unit('s')(time)} a sample"
