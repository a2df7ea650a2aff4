"""Section: the docking kernel in several programming models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from transect.report.engine.blocks import Column, Lead, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.columns import MARKS
from transect.report.engine.context import Context
from transect.report.engine.text import clean, in_unit, quantity, scale_for, with_ends
from transect.report.topics.docking.facts import Contest, Contestant, contests, docking_rows
from transect.report.topics.docking.findings import contest_title


def docking_body(context: Context) -> Iterator[Part]:
    """Draw and list who is fastest on each deck, threads by threads."""
    rows = docking_rows(context.of("bench"))
    if not rows:
        return
    yield Lead(
        "The energies of many poses of a ligand beside a protein, held to a float64 reference before a time counts: "
        "compared is the time per pose on equal decks, poses and threads."
    )
    yield note(
        "GFLOP/s by the published formula, which counts fewer operations per pair the more poses share a work-item (PPWI): no "
        "rate is compared across PPWI. First run: the warm-up before all timed runs, in which numba, OpenCL and Julia compile."
    )
    for number, contest in enumerate(contests(rows)):
        yield _contest(context, contest, number)


def _columns(context: Context, contest: Contest) -> list[Column[Contestant]]:
    scale = scale_for([row.time for row in contest.rows], "s")
    fastest = context.contrasts.of("docking.fastest")
    # Without the reference kernel other poses per work-item have a base of each model's own, which is another thing.
    bases = {id(pair.base) for pair in fastest}
    made = [*context.contrasts.of("docking.poses"), *fastest]
    pairs = {id(pair.group): pair for pair in made if id(pair.base) in bases}

    def times(row: Contestant) -> str | None:
        pair = pairs.get(id(row.group))
        return with_ends(pair.cost) if pair is not None else "reference" if id(row.group) in bases else None

    return [
        words("Model", lambda row: clean(row.name)),
        digits(f"Time per pose ({scale.unit})", lambda row: row.time / scale.factor),
        digits("times the reference", times),
        digits("Pairs", lambda row: _middle(row.interactions), in_unit("1/s")),
        digits("By the formula", lambda row: _middle(row.flops), in_unit("FLOP/s")),
        digits("First run", lambda row: _middle(row.first_run), in_unit("s")),
        digits("Runs", lambda row: len(row.group.ok)),
        MARKS,
    ]


def _middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _contest(context: Context, contest: Contest, number: int) -> Part:
    columns = _columns(context, contest)
    said = ", ".join(f"{row.words} {quantity(row.time, 's')}" for row in contest.best_of_models[:2])
    title = f"{contest_title(contest)}: {clean(said)} a pose"
    if number >= MAX_PANELS or len(contest.rows) < 2:
        return table(contest.rows, columns, caption=title)
    scale = scale_for([row.time for row in contest.rows], "s")

    def dot(row: Contestant) -> Dot:
        return Dot(
            label=clean(row.name),
            value=row.time / scale.factor,
            low=min(row.pose_time) / scale.factor,
            high=max(row.pose_time) / scale.factor,
            points=[value / scale.factor for value in row.pose_time],
            style=context.style(row.group),
            right=quantity(row.time, "s"),
            hollow=row.group.over_subscribed,
        )

    return dot_chart(
        contest.rows,
        dot,
        columns,
        title=title,
        axis=f"time per pose ({scale.unit}), shorter is better",
        name=f"docking-{number}",
    )
