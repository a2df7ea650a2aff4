"""Section: the docking kernel in several programming models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from transect.analysis.groups import Group
from transect.report.engine.blocks import Chip, Column, Lead, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, Point, Series, dot_chart, line_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.theme import palette
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, in_unit, quantity, scale_for, with_ends
from transect.report.topics.docking.facts import Contest, Contestant, Curve, curves, docking_rows, without_result
from transect.report.topics.docking.findings import contest_title, docking_contests
from transect.stats.estimates import Estimate

_MAX_CURVES = 12


def docking_body(context: Context) -> Iterator[Part]:
    """Draw who is fastest on each deck, and each model over its threads; list what did not run."""
    found = docking_contests(context)
    missing = without_result(context.of("bench"))
    if not found and not missing:
        return
    yield Lead(
        "The energies of many poses of a ligand beside a protein: arithmetic in single precision, hardly any "
        "memory. Every model computes the same poses, and its energies are held to a float64 reference before "
        "its time counts. Compared is the time per pose on equal decks, poses and threads."
    )
    yield note(
        "Pairs: poses x protein atoms x ligand atoms. GFLOP/s by the published formula, which counts fewer "
        "operations per pair the more poses share a work-item (PPWI): no rate is compared across PPWI. First "
        "run: the warm-up before all timed runs, in which numba, OpenCL and Julia compile."
    )
    for number, contest in enumerate(found):
        yield _contest(contest, number)
    yield _scaling(curves(docking_rows(context.of("bench"))))
    if missing:
        yield _missing(missing)


def _columns(contest: Contest) -> list[Column[Contestant]]:
    scale = scale_for([row.time for row in contest.rows], "s")
    columns: list[Column[Contestant]] = [
        words("Model", lambda row: clean(row.name)),
        digits(f"Time per pose ({scale.unit})", lambda row: row.time / scale.factor),
        digits("of the fastest", lambda row: contest.times_the_fastest(row), with_ends),
        digits("Pairs", lambda row: _middle(row.interactions), in_unit("1/s")),
        digits("By the formula", lambda row: _middle(row.flops), in_unit("FLOP/s")),
        digits("PPWI", lambda row: row.per_item),
        digits("First run", lambda row: _middle(row.first_run), in_unit("s")),
        digits("Runs", lambda row: len(row.pose_time)),
        words("", _marks),
    ]
    return columns


def _middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _marks(row: Contestant) -> Chip | None:
    if row.group.over_subscribed:
        return Chip("shared cores", "warn")
    return Chip("disturbed", "warn") if row.group.disturbed else None


def _contest(contest: Contest, number: int) -> Part:
    columns = _columns(contest)
    if number >= MAX_PANELS or len(contest.rows) < 2:
        return table(contest.rows, columns, caption=contest_title(contest))
    scale = scale_for([row.time for row in contest.rows], "s")
    models = sorted({row.model for row in contest.rows})
    styles = dict(zip(models, palette(len(models)), strict=True))

    def dot(row: Contestant) -> Dot:
        times = [value / scale.factor for value in row.pose_time]
        return Dot(
            label=clean(row.name),
            value=median(times),
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
        axis=f"time per pose ({scale.unit}), lower is better",
        name=f"docking-{number}",
        first="Fastest",
        unit=scale.unit,
    )


def _scaling(found: Sequence[Curve]) -> Part:
    """Draw every configuration over its threads, pinned and not, on one chart."""
    if not found:
        return None
    styles = palette(len(found))
    rows = [(curve, row) for curve in found for row in curve.rows]

    def times(curve: Curve, row: Contestant) -> list[float]:
        base = median(curve.rows[0].pose_time)
        return [base / value for value in row.pose_time]

    def speed_up(row: tuple[Curve, Contestant]) -> Estimate | None:
        return row[0].speed_up(row[1])

    series = [
        Series(
            name=_curve_name(curve),
            style=style,
            points=[Point(x=row.threads, repeats=times(curve, row), about=row) for row in curve.rows],
        )
        for curve, style in zip(found, styles, strict=True)
    ]
    base = min(curve.base for curve in found)
    most = max(row.threads for _, row in rows)
    ideal = {float(n): n / base for n in sorted({row.threads for _, row in rows})}
    return line_chart(
        series,
        rows,
        [
            words("Model", lambda row: _curve_name(row[0])),
            digits("Threads", lambda row: row[1].threads),
            words("Pinned", lambda row: "yes" if row[1].pinned else "no"),
            digits("Time per pose", lambda row: row[1].time, in_unit("s")),
            digits("Speed-up", speed_up, with_ends),
        ],
        title="Scaling with threads, pinned and not",
        x="threads",
        y=f"speed-up over {count(base, 'thread')}",
        name="docking-threads",
        alt=f"Speed-up of {len(found)} configurations from {base} to {most} threads.",
        most=_MAX_CURVES,
        bound=ideal,
        bound_name="linear",
        y_log=False,
        notes=["Each over its own fewest threads; small dots are repeats."],
    )


def _curve_name(curve: Curve) -> str:
    row = curve.rows[0]
    return clean(f"{row.name}, {row.deck}" if row.deck != "medium" else row.name)


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
