"""Section: the docking kernel in several programming models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from transect.analysis.contrasts import contrast
from transect.analysis.groups import Group
from transect.report.engine.blocks import Chip, Column, Lead, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.theme import palette
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, in_unit, quantity, scale_for, with_ends
from transect.report.topics.docking.facts import (
    POSE,
    Contest,
    Contestant,
    contests,
    curves,
    docking_rows,
    without_result,
)
from transect.report.topics.docking.findings import contest_title
from transect.stats.estimates import Estimate


def docking_body(context: Context) -> Iterator[Part]:
    """Draw who is fastest on each deck, and each model over its threads; list what did not run."""
    rows = docking_rows(context.of("bench"))
    found = contests(rows)
    missing = without_result(context.of("bench"))
    if not found and not missing:
        return
    yield Lead(
        "The energies of many poses of a ligand beside a protein, held to a float64 reference before a time counts: "
        "compared is the time per pose on equal decks, poses and threads."
    )
    yield note(
        "GFLOP/s by the published formula, which counts fewer operations per pair the more poses share a work-item (PPWI): no "
        "rate is compared across PPWI. First run: the warm-up before all timed runs, in which numba, OpenCL and Julia compile."
    )
    for number, contest in enumerate(found):
        yield _contest(context, contest, number)
    yield _scaling(context, curves(rows))
    if missing:
        yield _missing(missing)


def _columns(context: Context, contest: Contest) -> list[Column[Contestant]]:
    scale = scale_for([row.time for row in contest.rows], "s")
    # Beside the reference kernel, or the model's own poses per work-item.
    made = [*context.contrasts.of("docking.poses"), *context.contrasts.of("docking.fastest")]
    pairs = {id(pair.group): pair for pair in made}
    bases = {id(pair.base) for pair in made}

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
        digits("Runs", lambda row: len(row.pose_time)),
        words("", _marks),
    ]


def _middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _marks(row: Contestant) -> Chip | None:
    if row.group.over_subscribed:
        return Chip("shared cores", "warn")
    return Chip("disturbed", "warn") if row.group.disturbed else None


def _contest(context: Context, contest: Contest, number: int) -> Part:
    columns = _columns(context, contest)
    if number >= MAX_PANELS or len(contest.rows) < 2:
        return table(contest.rows, columns, caption=contest_title(contest))
    scale = scale_for([row.time for row in contest.rows], "s")
    models = sorted({row.model for row in contest.rows})
    styles = dict(zip(models, palette(len(models)), strict=True))

    def dot(row: Contestant) -> Dot:
        times = [value / scale.factor for value in row.pose_time]
        return Dot(
            label=clean(row.name),
            value=row.time / scale.factor,
            low=min(times),
            high=max(times),
            points=times,
            style=styles[row.model],
            right=quantity(row.time, "s"),
        )

    return dot_chart(
        list(contest.rows),
        dot,
        columns,
        title=f"Time per pose: {contest_title(contest)}",
        axis=f"time per pose ({scale.unit}), less is better",
        name=f"docking-{number}",
        first="Fastest",
        unit=scale.unit,
    )


def _scaling(context: Context, found: Sequence[Sequence[Contestant]]) -> Part:
    """List every configuration over its threads, pinned and not."""
    rows = [(members[0], row) for members in found for row in members]

    def speed_up(pair: tuple[Contestant, Contestant]) -> Estimate | None:
        base, row = pair
        made = None
        if base is not row:
            made = contrast(row.group, base.group, context.floors, POSE, varies="threads", by="run")
        return made.cost.inverse if made is not None and not made.barred else None

    columns: list[Column[tuple[Contestant, Contestant]]] = [
        words("Model", lambda pair: clean(pair[1].name)),
        words("Deck", lambda pair: clean(pair[1].deck)),
        digits("Threads", lambda pair: pair[1].threads),
        digits("Time per pose", lambda pair: pair[1].time, in_unit("s")),
        digits("Speed-up", speed_up, with_ends),
        words("", lambda pair: _marks(pair[1])),
    ]
    return table(rows, columns, caption="Each configuration over its threads") if rows else None


def _missing(groups: Sequence[Group]) -> Part:
    def chosen(group: Group) -> str:
        options = dict(group.cell.get("options"))
        named = [options.get("implementation", "numba"), options.get("compiler", "")]
        named += ["GPU" if group.cell.device == "cuda" else "", count(group.cell.threads, "thread")]
        return clean(" ".join(str(part) for part in named if part))

    return table(
        groups,
        [
            words("Model", chosen),
            words("Status", lambda group: group.records[0].status.value),
            words("Why", lambda group: clean(group.records[0].message)),
        ],
        caption="Without a result, in the words of who lacks it",
    )
