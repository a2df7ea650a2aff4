"""How work-items are dealt out to threads: which schedule of OpenMP is fastest, and what each chunk costs.

On a deck of next to no work a run of the kernel takes what dealing it out takes: the slope of its time over the number of
chunks is what a chunk costs. A static schedule deals out before the loop, a dynamic one while it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import linear_regression
from typing import Any

from transect.analysis.best import best
from transect.analysis.contrasts import all_joined
from transect.analysis.groups import Group, grouped
from transect.report.engine.best_words import beside, confidence_of, with_open
from transect.report.engine.blocks import Column, Lead, Part, digits, note, words
from transect.report.engine.charts.chart import Point, Series, dot_chart, line_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.columns import MARKS
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined
from transect.report.engine.text import clean, count, number, quantity, scale_for, with_ends
from transect.report.topics.docking.facts import POSE, Contestant, docking_rows
from transect.stats.samples import Spread, Summary, summarise

RULE = "docking.schedule"
_TIME = "pose-time_median"
# Fewer sizes of chunks give no slope that a fault of one of them does not make.
_LEAST_SIZES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """Ways to deal out the same work-items to as many threads in the same places, the fastest first."""

    rows: Sequence[Contestant]

    @property
    def first(self) -> Contestant:
        """The fastest."""
        return self.rows[0]

    @property
    def title(self) -> str:
        """What all rows share."""
        row = self.first
        items = f"{count(self.items, 'work-item')} of {count(row.per_item, 'pose')}"
        return clean(f"{row.deck}, {items}, {count(row.threads, 'thread')}, {_where(row)}{_inside(row)}")

    @property
    def items(self) -> int:
        """Work-items of a run."""
        return -(-self.first.poses // self.first.per_item)

    def chunks(self, row: Contestant) -> int | None:
        """Return the chunks of a run; None where the schedule makes them as it goes."""
        if row.schedule == "guided":
            return None
        size = row.chunk or (1 if row.schedule == "dynamic" else -(-self.items // row.threads))
        return -(-self.items // size)

    def cost(self, schedule: str) -> Summary | None:
        """Return the seconds of a thread that a chunk costs, of each repeat a slope; None for too few sizes of chunks."""
        rows = [row for row in self.rows if row.schedule == schedule]
        slopes = []
        times = [(chunks, _by_repeat(row.group)) for row in rows if (chunks := self.chunks(row)) is not None]
        for repeat in sorted({repeat for _, known in times for repeat in known}):
            points = {chunks: known[repeat] for chunks, known in times if repeat in known}
            if len(points) >= _LEAST_SIZES:
                slope = linear_regression(list(points), list(points.values())).slope
                slopes.append(slope * self.first.poses * self.first.threads)
        return summarise(slopes)


def _by_repeat(group: Group[Any]) -> dict[int, float]:
    values = {record.cell.repeat: record.value(POSE, _TIME) for record in group.ok}
    return {repeat: value for repeat, value in values.items() if value is not None}


def _where(row: Contestant) -> str:
    return f"pinned {row.where}" if row.pinned else "not pinned"


def _inside(row: Contestant) -> str:
    container = row.group.cell.container
    return f", in {container}" if container else ""


def _way(row: Contestant) -> str:
    """Name how a row deals out: `dynamic, chunk 16`."""
    return clean(row.schedule + (f", chunk {row.chunk}" if row.chunk else ""))


def assignments(rows: Iterable[Contestant]) -> list[Assignment]:
    """Return rows that differ in how work is dealt out and in nothing else, those with more ways first."""

    def place(row: Contestant) -> tuple[Any, ...]:
        return row.model, row.compiler, row.deck, row.poses, row.per_item, row.threads, _where(row), _inside(row)

    parts = grouped((row for row in rows if row.schedule), place).values()
    made = [Assignment(rows=sorted(members, key=lambda row: (row.time, _way(row)))) for members in parts]
    return sorted(
        (one for one in made if len({_way(row) for row in one.rows}) > 1), key=lambda one: (-len(one.rows), one.title)
    )


def pinnings(rows: Iterable[Contestant]) -> list[list[Contestant]]:
    """Return rows that are dealt out alike and differ in where their threads are, the fastest first."""

    def alike(row: Contestant) -> tuple[Any, ...]:
        return row.deck, row.poses, row.per_item, row.threads, _way(row), row.model, row.compiler, _inside(row)

    parts = grouped((row for row in rows if row.schedule), alike).values()
    made = [sorted(members, key=lambda row: (row.time, _where(row))) for members in parts]
    return sorted(
        (one for one in made if len({_where(row) for row in one}) > 1), key=lambda one: (-len(one), _way(one[0]))
    )


def _cost_words(cost: Summary) -> str:
    """Write a cost in microseconds with its ends: `0.12 µs (0.11 to 0.13 in 3 runs)`."""
    kind = {Spread.INTERVAL: "95 % interval of", Spread.RANGE: "range of"}.get(cost.spread, "in")
    low, middle, high = (number(value * 1e6) for value in (cost.low, cost.median, cost.high))
    ends = f"{low} to {high}, " if cost.count > 1 else ""
    return f"{middle} µs ({ends}{kind} {count(cost.count, 'run')})"


def _micros(cost: Summary) -> str:
    """Write a cost in microseconds with its ends, as tables do."""
    low, middle, high = (number(value * 1e6) for value in (cost.low, cost.median, cost.high))
    return f"{middle} ({low} – {high})" if cost.count > 1 else middle


def _cost_claim(cost: Summary) -> str:
    if cost.low <= 0:
        return f"what a chunk of a dynamic schedule costs a thread is not seen: {_cost_words(cost)}"
    return f"each chunk of a dynamic schedule costs {_cost_words(cost)} of a thread's time"


def assignment_findings(context: Context) -> list[Finding]:
    """Say of each set of equal work-items which schedule is fastest, by how much, and what a chunk costs."""
    return [found for one in assignments(docking_rows(context.of("bench"))) for found in _fastest(context, one)]


def _fastest(context: Context, one: Assignment) -> Iterator[Finding]:
    of_group = {id(row.group): row for row in one.rows}
    raced = [row.group for row in one.rows]
    planned = (pair for pair in context.contrasts.of(RULE) if {id(pair.group), id(pair.base)} <= of_group.keys())
    found = best(all_joined(planned, raced, context.floors, POSE, varies="schedule"), raced, metric=POSE)
    if found is None:
        return

    def name(group: Group[Any]) -> str:
        return _way(of_group[id(group)])

    first = of_group[id(found.first)]
    short = f"dealt out {name(found.first)} a pose takes {quantity(first.time, 's')}{beside(found, name)}"
    cost = one.cost("dynamic")
    said = f"{short}; {_cost_claim(cost)}" if cost is not None else short
    finding = Finding(
        subject="study",
        kind="docking",
        topic="schedule",
        named=True,
        confidence=confidence_of(found),
        contrasts=found.contrasts,
        numbers=found.numbers(lambda group: of_group[id(group)].time),
        tests=found.tests,
        scope=one.title,
        groups=(found.first, *(group for group in raced if group is not found.first)),
        claim=f"{said}.",
        short=said,
        evidence=joined(
            *(f"{name(made.group)} beside {name(made.base)}: {made.reason}" for made in found.contrasts[:3])
        ),
    )
    yield from with_open(name, (finding, found))


def assignment_body(context: Context) -> Iterator[Part]:
    """Draw time against the size of chunks, a line for each schedule, with what chunks cost; then where threads are."""
    rows = docking_rows(context.of("bench"))
    found, pinned = assignments(rows), pinnings(rows)
    if not found and not pinned:
        return
    yield Lead(
        "One kernel, its work-items dealt out to OpenMP's threads in different ways. On a deck of next to no work, what is left "
        "of the time is what dealing out costs."
    )
    yield note(
        "What a chunk costs: the slope of the time of a run over its number of chunks, times the threads, of each repeat one. Of a "
        "static schedule nothing is dealt out while the loop runs: what its chunks cost is that neighbours in memory are "
        "written by several threads. A guided schedule begins with large chunks, and its number is the least."
    )
    for place, one in enumerate(found):
        yield _panel(context, one, place)
    for place, alike in enumerate(pinned):
        yield _pins(context, alike, place)


def _beside(context: Context, rule: str) -> Column[Contestant]:
    """Return the column of how many times as long a row takes as its base."""
    pairs = {id(pair.group): pair for pair in context.contrasts.of(rule)}
    bases = {id(pair.base) for pair in pairs.values()}

    def times(row: Contestant) -> str | None:
        pair = pairs.get(id(row.group))
        return with_ends(pair.cost) if pair is not None else "reference" if id(row.group) in bases else None

    return digits("times the reference", times)


def _pins(context: Context, rows: Sequence[Contestant], place: int) -> Part:
    """Draw a row of runs for each place of the threads."""
    scale = scale_for([row.time * row.poses for row in rows], "s")
    first = rows[0]
    title = clean(
        f"{first.deck}, {count(first.threads, 'thread')}, {_way(first)}{_inside(first)}: {_where(first)} is fastest by the median"
    )

    def dot(row: Contestant) -> Dot:
        runs = [value * row.poses / scale.factor for value in row.pose_time]
        return Dot(
            label=_where(row),
            value=row.time * row.poses / scale.factor,
            low=min(runs),
            high=max(runs),
            points=runs,
            style=context.styles.get(row.schedule, row.schedule),
            right=quantity(row.time * row.poses, "s"),
            hollow=row.group.over_subscribed,
        )

    return dot_chart(
        rows,
        dot,
        [
            words("Threads", _where),
            digits(f"Time of a run ({scale.unit})", lambda row: row.time * row.poses / scale.factor),
            _beside(context, "docking.threads"),
            digits("Runs", lambda row: len(row.group.ok)),
            MARKS,
        ],
        title=title,
        axis=f"time of a run ({scale.unit}), less is better",
        name=f"pinned-threads-{place}",
    )


def _panel(context: Context, one: Assignment, place: int) -> Part:
    scale = scale_for([row.time * row.poses for row in one.rows], "s")
    costs = {schedule: one.cost(schedule) for schedule in ("static", "dynamic")}

    def cost(row: Contestant) -> str | None:
        known = costs.get(row.schedule)
        return _micros(known) if known is not None and row.chunk else None

    columns: list[Column[Contestant]] = [
        words("Dealt out", _way),
        digits("Chunks", one.chunks),
        digits(f"Time of a run ({scale.unit})", lambda row: row.time * row.poses / scale.factor),
        _beside(context, RULE),
        digits("A chunk costs (µs)", cost),
        digits("Runs", lambda row: len(row.group.ok)),
        MARKS,
    ]

    def series(schedule: str, rows: Sequence[Contestant]) -> Series:
        return Series(
            name=schedule,
            style=context.styles.get(schedule, schedule),
            points=[
                Point(
                    # A static schedule without a chunk deals each thread its share at once.
                    x=row.chunk or (1 if schedule != "static" else -(-one.items // row.threads)),
                    repeats=[value * row.poses / scale.factor for value in row.pose_time],
                    hollow=row.group.over_subscribed,
                    about=row,
                )
                for row in rows
            ],
        )

    lines = [series(schedule, rows) for schedule, rows in grouped(one.rows, lambda row: row.schedule).items()]
    dynamic = costs["dynamic"]
    title = f"{one.title}: {_way(one.first)} is fastest by the median"
    title += f", a chunk of a dynamic schedule costs {_micros(dynamic)} µs" if dynamic is not None else ""
    return line_chart(
        lines,
        one.rows,
        columns,
        title=title,
        x="work-items of a chunk",
        y=f"time of a run ({scale.unit}), less is better",
        name=f"task-assignment-{place}",
        most=len(lines),
    )
