"""Latency of one call after another: its distribution per batch, its tail, the throughput."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from transect.analysis.bounds import run_bound
from transect.analysis.groups import grouped
from transect.analysis.serving import RUN, WHOLE, InferGroup, base_point, rates
from transect.report.engine.blocks import Column, Part, digits, note
from transect.report.engine.charts.chart import MAX_DRAWN, MAX_PANELS, dot_chart, drawn
from transect.report.engine.charts.marks import Dot, Line
from transect.report.engine.charts.plots import line_plot, log_is_better
from transect.report.engine.charts.ticks import log_ticks
from transect.report.engine.columns import labelled, medians, metric_columns, ranked
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import Scale, scale_for
from transect.report.topics.serving.facts import Measure, measure_for, place_of
from transect.report.topics.serving.series import RuntimeSeries
from transect.stats.noise import middle
from transect.stats.samples import quantile

# A tail percentile needs samples in the tail: twenty beyond it.
_BEYOND = 20
_TAIL_SAMPLES = 400
_DECADE = 10.0
# Lines of a tail chart, and places along each.
_MAX_LINES, _PLACES = 8, 60


def latency_charts(context: Context, name: str, groups: list[InferGroup]) -> Iterator[Part]:
    """Draw a chart of latencies per batch with the rates that they come to, and the tail at the smallest.

    All by one measure, of which the runtimes beside each other do the same work.
    """
    measure = measure_for(groups)
    of_batch = grouped(groups, lambda group: group.cell.batch)
    for batch, same in sorted(of_batch.items())[:MAX_PANELS]:
        yield _latency(context, f"{name}-{batch}", batch, same, measure)
    yield _tail(context, name, base_point(groups), measure)


@dataclass(frozen=True, kw_only=True)
class _Latency:
    """A group with all its samples of a measure, where they are kept."""

    group: InferGroup
    measure: str
    samples: list[float]

    @cached_property
    def middle(self) -> tuple[float, float] | None:
        """Ends of the middle half of the samples."""
        if not self.samples:
            return None
        return quantile(self.samples, 0.25), quantile(self.samples, 0.75)

    @cached_property
    def tail(self) -> float | None:
        """95th percentile, or None when too few samples support one."""
        return quantile(self.samples, 0.95) if len(self.samples) >= _TAIL_SAMPLES else None

    @property
    def ends(self) -> tuple[float, float, float]:
        """The median of the runs' medians, and what is drawn to its left and right."""
        summary = self.group.summary(self.measure)
        if summary is None:
            raise ValueError(f"{self.group.cell.id}: ranked by {self.measure}, which it lacks")
        far = [end for end in (self.tail, self.middle and self.middle[1], summary.high) if end is not None]
        return summary.median, min(self.samples, default=summary.low), far[0]


def _with_samples(context: Context, groups: list[InferGroup], measure: str) -> list[_Latency]:
    """Read the samples of what is drawn again from the records, and of nothing else."""
    return [
        _Latency(
            group=group,
            measure=measure,
            samples=[
                value
                for record in group.ok
                if place < MAX_DRAWN
                for value in context.originals.samples(record, measure)
            ],
        )
        for place, group in enumerate(groups)
    ]


def _latency(context: Context, name: str, batch: int, groups: list[InferGroup], measure: Measure) -> Part:
    first = ranked(groups, measure.name)
    label = labelled(first, "Point", always=("threads",))
    scale = scale_for([median(group, measure.name) for group in first], "s")
    rows = _with_samples(context, first, measure.name)

    def dot(row: _Latency) -> Dot:
        value, low, high = row.ends
        return Dot(
            label=str(label.entry(row)),
            value=value / scale.factor,
            low=low / scale.factor,
            high=high / scale.factor,
            inner=(row.middle[0] / scale.factor, row.middle[1] / scale.factor) if row.middle else None,
            style=context.style(row.group),
            right=f"{scale.text(value)} {scale.unit}",
            count=len(row.group.values(row.measure)),
            ends="of all calls",
        )

    def bound(row: _Latency) -> float | None:
        limit = run_bound(row.group, context.rates)
        return limit.time_s if limit else None

    every = [end for row in rows[:MAX_DRAWN] for end in row.ends]
    log = log_is_better(every, _DECADE)
    return dot_chart(
        rows,
        dot,
        [
            label,
            *metric_columns(measure.name, scale),
            digits("Samples", lambda row: len(row.samples) or None),
            digits(f"95th percentile ({scale.unit})", lambda row: row.tail, scale),
            digits(f"Bound ({scale.unit})", bound, scale),
            digits("Samples/s", lambda row: middle(found) if (found := rates(row.group, measure.name)) else None),
            *_run_alone(measure, scale),
            *measure.columns,
        ],
        title=f"Time of a call at batch {batch}",
        name=f"latency-{name}",
        first="Lowest",
        unit=scale.unit,
        log=log,
        axis=f"{measure.call} ({scale.unit}{', log scale' if log else ''}), less is better",
        notes=[measure.note],
    )


def _run_alone(measure: Measure, scale: Scale) -> list[Column[Any]]:
    """Return the column of Run, where whole calls are drawn."""
    return [medians(f"Run ({scale.unit})", RUN, scale)] if measure.name == WHOLE else []


def _tail(context: Context, name: str, groups: list[InferGroup], measure: Measure) -> Part:
    """Draw which share of the calls took longer, as far as samples lie beyond."""
    lines = RuntimeSeries(context, groups)
    rows = _with_samples(context, ranked(groups, measure.name), measure.name)
    able = [row for row in rows if len(row.samples) > 2 * _BEYOND]
    if not able:
        older = rows and measure.name == WHOLE and not any(row.samples for row in rows)
        return note("No tail is drawn: these runs kept no times of whole calls.") if older else None
    shown = able[:_MAX_LINES]
    scale = scale_for([row.ends[0] for row in shown], "s")
    curves = [[(value / scale.factor, share) for value, share in _beyond(row.samples)] for row in shown]
    ends = [value for curve in curves for value, _ in (curve[0], curve[-1])]
    drawing = line_plot(
        [
            Line(points=curve, style=lines.style(row.group), symbols=False, about=row, name=lines.name(row.group))
            for row, curve in zip(shown, curves, strict=True)
        ],
        x_title=f"{measure.call} ({scale.unit}, log scale)",
        y_title="share of calls above it",
        x_log=True,
        y_log=True,
        ticks=log_ticks(min(ends) / 1.5, max(ends) * 1.5),
    )
    point = place_of(shown[0].group)
    return drawn(
        drawing,
        able,
        [
            labelled([row.group for row in able], "Point"),
            digits("Samples", lambda row: len(row.samples)),
            *(
                digits(f"{title} ({scale.unit})", partial(_quantile, share=share), scale)
                for title, share in (("Median", 0.5), ("90th", 0.9), ("95th", 0.95), ("99th", 0.99))
            ),
            *measure.columns,
        ],
        title=f"Tail of the latency at {point}",
        name=f"tail-{name}",
        alt=f"Share of calls that take longer than a latency, at {point}, a line per runtime.",
        notes=(
            f"A line ends, and a percentile is given, where {_BEYOND} samples lie beyond it.",
            f"{len(able) - len(shown)} slower in the numbers." if len(able) > len(shown) else "",
            measure.note,
        ),
    )


def _quantile(row: _Latency, share: float) -> float | None:
    """Return a percentile that has enough samples beyond it, or None."""
    enough = len(row.samples) * (1 - share) >= _BEYOND - 1e-9
    return quantile(row.samples, share) if enough else None


def _beyond(samples: list[float]) -> list[tuple[float, float]]:
    """Return latencies and the share of samples above each, evenly in the share's logarithm."""
    ordered, amount = sorted(samples), len(samples)
    last = amount - _BEYOND
    ratio = _BEYOND / amount
    places = {round(amount * (1 - ratio ** (i / _PLACES))) for i in range(_PLACES + 1)}
    return [(ordered[place], 1 - place / amount) for place in sorted(places) if place <= last]
