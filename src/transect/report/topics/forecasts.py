"""Steps that were predicted before they were measured, how far off they were, and the curve that nobody has measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.entries import AnyRecord
from transect.analysis.extrapolation import Curve
from transect.analysis.groups import Floors, Group
from transect.analysis.labels import group_labels, people_name
from transect.analysis.parallelism import STEP, points
from transect.analysis.scaling import TrainGroup
from transect.domain.cell import Cell
from transect.report.engine.blocks import Chip, Column, Heading, Lead, Part, Prose, digits, note, table, words
from transect.report.engine.charts.chart import Point, Series, line_chart
from transect.report.engine.columns import labelled
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, lowest_confidence, names
from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.engine.text import clean, count, factor, in_unit, multiplying, percent, scale_for, spread, tenths
from transect.stats.comparisons import Confidence
from transect.stats.samples import MIN_INTERVAL_VALUES, Summary

PREDICTED = "predicted_step_time"


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """A training's step time and its prediction, both in s.

    `in_time` says that every training of the group began after the prediction was stored: one made
    later is no prediction, and counts nowhere. `made` and `trained` are these times as recorded.
    """

    group: TrainGroup
    record: AnyRecord
    predicted_s: float
    measured: Summary
    made: str
    trained: str
    in_time: bool

    @property
    def error(self) -> float:
        """Predicted over measured less one: 0.05 is 5 % too long."""
        return self.predicted_s / self.measured.median - 1

    @property
    def counts(self) -> bool:
        """Whether it counts for or against the predictor: made in time, of ranks with cores of their own."""
        return self.in_time and not self.group.over_subscribed


def forecasts(predictions: Iterable[Group[Any]], trained: Iterable[TrainGroup]) -> list[Forecast]:
    """Pair each stored prediction with its training; those without one are left out."""
    of_id = {group.cell.id: group for group in trained}
    found = []
    for record in (record for group in predictions for record in group.ok):
        group = of_id.get(str(record.details.get("for")))
        predicted = record.value(PREDICTED)
        measured = group.summary(STEP) if group is not None else None
        if group is None or predicted is None or measured is None or group.wrong:
            continue
        began = min((record.started for record in group.ok), key=_time)
        found.append(
            Forecast(
                group=group,
                record=record,
                predicted_s=predicted,
                measured=measured,
                made=record.ended,
                trained=began,
                in_time=_time(record.ended) <= _time(began),
            )
        )
    return found


def _time(text: str) -> datetime:
    """Read a time of a record; without a zone it is UTC, as all are."""
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def mean_error(found: Iterable[Forecast]) -> float | None:
    """Return the mean absolute error of those that count, as a share; None without any."""
    errors = [abs(forecast.error) for forecast in found if forecast.counts]
    return statistics.fmean(errors) if errors else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """Pairs of ways to do equal work that measurements decide, and for how many the prediction was right.

    `contrasts` are those that decide them.
    """

    right: int
    decided: int
    wrong: Sequence[tuple[Forecast, Forecast]]
    contrasts: tuple[Contrast, ...]


def order_of(found: Sequence[Forecast], floors: Floors, *, asked: bool = False) -> Order:
    """Compare the order of predictions with that of measurements: pairs on equal ranks with equal work."""
    by_group = {id(forecast.group): forecast for forecast in found if forecast.counts}
    right, wrong, apart = 0, [], []
    for members in points([forecast.group for forecast in by_group.values()]):
        for a, b in combinations(members, 2):
            found_apart = contrast(a, b, floors, STEP, varies="strategy", asked=asked)
            if found_apart is None or not found_apart.shown:
                continue
            apart.append(found_apart)
            first, second = by_group[id(a)], by_group[id(b)]
            if (first.predicted_s < second.predicted_s) == (found_apart.better is a):
                right += 1
            else:
                wrong.append((first, second))
    return Order(right=right, decided=right + len(wrong), wrong=wrong, contrasts=tuple(apart))


def all_forecasts(context: Context) -> list[Forecast]:
    """Return every prediction that has a measurement beside it."""
    return forecasts(context.of("forecast"), context.of("train"))


@multiplying(100.0)
def error_words(share: float) -> str:
    """Write an error with its sign: `+2.1 %`.

    >>> [error_words(x) for x in (0.021, -0.5, 0.0)]
    ['+2.1 %', '−50.0 %', '0.0 %']
    """
    return f"+{tenths(share)}" if share > 0.0005 else tenths(share)


def forecast_findings(context: Context) -> list[Finding]:
    """Say how far predictions were off, and whether their order was right."""
    if not context.of("forecast"):
        return []
    found = all_forecasts(context)
    mean = mean_error(found)
    late = sum(not forecast.in_time for forecast in found)
    shared = sum(forecast.in_time and forecast.group.over_subscribed for forecast in found)
    left = joined(
        f"{count(shared, 'prediction')} of ranks that share cores left out" if shared else "",
        f"{count(late, 'prediction')} made after the training began left out" if late else "",
    )
    if mean is None:
        claim = "no prediction was made in time of a training whose ranks have cores of their own."
        return [
            Finding(
                subject="study",
                claim=claim,
                kind="forecast",
                confidence=Confidence.INCONCLUSIVE,
                evidence=left or "no usable training stands beside a prediction",
            )
        ]
    counted = sorted((forecast for forecast in found if forecast.counts), key=lambda forecast: -abs(forecast.error))
    order = order_of(found, context.floors, asked=context.asks("forecast"))
    claim = (
        f"{count(len(counted), 'step')} predicted before {'it' if len(counted) == 1 else 'they'} ran "
        f"{'was' if len(counted) == 1 else 'were'} {tenths(mean)} off in the mean, at most "
        f"{tenths(abs(counted[0].error))}"
    )
    if order.decided:
        claim += (
            f"; of {count(order.decided, 'pair')} of strategies that measurements tell apart, "
            f"{order.right} came in the predicted order"
        )
    wrong = [f"{a.group.cell.strategy} and {b.group.cell.strategy}" for a, b in order.wrong]
    few = len(counted) < MIN_INTERVAL_VALUES
    return [
        Finding(
            subject="study",
            claim=claim + ".",
            kind="forecast",
            confidence=Confidence.PROVISIONAL
            if few or wrong
            else lowest_confidence(found.confidence for found in order.contrasts),
            contrasts=order.contrasts,
            evidence=joined(
                f"farthest: {_training(counted[0].group.cell)}, {error_words(counted[0].error)}",
                f"wrong order: {names(wrong)}" if wrong else "",
                left,
            ),
        )
    ]


# Series of the chart.
_MAX_CURVES = 12


def forecast_body(context: Context) -> Iterator[Part]:
    """Draw and list every prediction beside its measurement; nothing without predictions."""
    if not context.of("forecast"):
        return
    found = all_forecasts(context)
    yield Lead(
        "A prediction counts if its record was there before the first training that it speaks of began; the "
        "times of both stand beside it. The simulator took measured layers, messages and all-reduces, never "
        "a step of the training itself."
    )
    if found:
        yield _table(found)
    yield from _curves(context, mean_error(found))
    used = {id(forecast.record) for forecast in found}
    left = sum(id(record) not in used for group in context.of("forecast") for record in group.records)
    if left:
        yield note(f"{count(left, 'prediction')} without a usable training to stand beside, or that failed.")


def _training(cell: Cell) -> str:
    return clean(f"{cell.workload} by {people_name(cell, always=('ranks',))}")


def _table(found: Sequence[Forecast]) -> Part:
    scale = scale_for([forecast.measured.median for forecast in found], "s")
    columns: list[Column[Forecast]] = [
        words("Workload", lambda row: row.group.cell.workload),
        labelled(found, always=("ranks",)),
        digits(f"Predicted ({scale.unit})", lambda row: row.predicted_s, scale),
        digits(f"Measured ({scale.unit})", lambda row: row.measured.median, scale),
        digits("Range or interval", lambda row: spread(row.measured, scale)),
        digits("Runs", lambda row: row.measured.count),
        digits("Error", lambda row: row.error, error_words),
        words("Predicted (UTC)", lambda row: _clock(row.made)),
        words("Trained from (UTC)", lambda row: _clock(row.trained)),
        words("", _mark),
    ]
    return table(found, columns, caption="Predicted and measured", fold_title="Predicted and measured")


def _clock(text: str) -> str:
    """Write a record's time, UTC, to the second."""
    return text[:19].replace("T", " ")


def _mark(forecast: Forecast) -> Chip:
    if not forecast.in_time:
        return Chip("made too late", "bad")
    return Chip("shared cores", "warn") if forecast.group.over_subscribed else Chip("in time", "good")


def _curves(context: Context, error: float | None) -> Iterator[Part]:
    """Draw predicted speed-ups over replicas, and say how far they may be trusted."""
    found = context.curves
    if not found:
        return
    yield Heading("Extrapolated to 131,072 ranks")
    seen = (
        "not known: no prediction was held against a measurement within its cores"
        if error is None
        else f"{tenths(error)} in the mean, on as many ranks as ran"
    )
    yield Prose(
        f"Nobody has measured this. Replicas are added, each with the samples that it has here, over the network that "
        f"was probed here; the error seen so far is {seen}, and nothing bounds it where more ranks meet other "
        "networks, switches and stragglers."
    )
    names = group_labels([curve.group for curve in found], always=("framework",), never=("ranks", "nodes", "batch"))
    workloads = {curve.group.cell.workload for curve in found}

    def name(curve: Curve) -> str:
        label = names[curve.group.cell]
        return f"{curve.group.cell.workload} · {label}" if len(workloads) > 1 else label

    rows = [(curve, point) for curve in found for point in curve.points]
    ends = sorted(curve.points[-1].efficiency for curve in found)
    span = " to ".join(dict.fromkeys(percent(end) for end in (ends[0], ends[-1])))
    yield line_chart(
        [
            Series(
                name=name(curve),
                style=context.style(curve.group),
                points=[
                    Point(x=point.ranks, repeats=[100 * point.efficiency], hollow=False, about=curve)
                    for point in curve.points
                ],
            )
            for curve in found
        ],
        rows,
        [
            words("Training", lambda row: name(row[0])),
            digits("Replicas", lambda row: row[1].replicas),
            digits("Ranks", lambda row: row[1].ranks),
            digits("Step", lambda row: row[1].step_s, in_unit("s")),
            digits("Speed-up", lambda row: row[1].speed_up, factor),
            digits("Efficiency", lambda row: row[1].efficiency, tenths),
            words("All-reduce", lambda row: row[1].algorithm or None),
            words(
                "",
                lambda row: Chip(
                    "poor network" if row[0].poor else "extrapolated", "warn", row[0].network.get("remark", "")
                ),
            ),
        ],
        title=f"Extrapolated, {span} of one replica's efficiency is left at the most ranks",
        x="ranks (extrapolated)",
        y="efficiency beside one replica, %",
        name="forecast-curve",
        most=_MAX_CURVES,
        y_log=False,
        notes=["Extrapolated: simulated from layers and messages measured here."],
    )


REPORT = StageReport(
    stage="forecast",
    sections=(Section(key="forecasts", title="Predicted and measured", order=340, make=forecast_body),),
    findings=(FindingMaker(name="forecast", order=440, make=forecast_findings, section="forecasts"),),
)
