"""Section: steps as they were predicted, beside what was measured afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.extrapolation import Curve
from transect.analysis.labels import group_labels
from transect.report.engine.blocks import Chip, Column, Heading, Lead, Part, Prose, digits, table, words
from transect.report.engine.charts.chart import Point, Series, dot_chart, line_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.theme import palette
from transect.report.engine.columns import labelled
from transect.report.engine.context import Context
from transect.report.engine.text import clipped, factor, in_unit, scale_for, spread, tenths
from transect.report.topics.forecasts.facts import Forecast, mean_error, unmatched
from transect.report.topics.forecasts.findings import all_forecasts, error_words

_REASON = 160
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
        yield _chart(context, found)
        yield _table(found)
    yield from _curves(context, mean_error(found))
    left = unmatched(context.of("forecast"), found)
    if left:
        yield table(
            left,
            [
                words("Prediction", lambda record: record.cell_id.split("~")[0]),
                words(
                    "Status",
                    lambda record: Chip(record.status.value, "warn" if record.status.value != "ok" else "plain"),
                ),
                words(
                    "Why nothing stands beside it",
                    lambda record: (
                        clipped(record.message, _REASON) or "its training has no usable result, or is not there yet"
                    ),
                ),
            ],
            caption="Not held against a measurement",
            fold_title="Not held against a measurement",
        )


def _chart(context: Context, found: Sequence[Forecast]) -> Part:
    label = labelled(found, always=("ranks",))
    several = len({forecast.group.cell.workload for forecast in found}) > 1
    ordered = sorted(found, key=lambda forecast: (not forecast.counts, abs(forecast.error), forecast.group.cell.id))

    def name(forecast: Forecast) -> str:
        return f"{forecast.group.cell.workload} · {label.entry(forecast)}" if several else str(label.entry(forecast))

    def dot(forecast: Forecast) -> Dot:
        low, high = (100 * (forecast.predicted_s / end - 1) for end in (forecast.measured.high, forecast.measured.low))
        return Dot(
            label=name(forecast),
            value=100 * forecast.error,
            low=low,
            high=high,
            hollow=not forecast.counts,
            ends=forecast.measured.word,
            count=forecast.measured.count,
            style=context.style(forecast.group),
            right=error_words(forecast.error),
        )

    return dot_chart(
        ordered,
        dot,
        [words("Training", name), digits("Error", lambda forecast: forecast.error, error_words)],
        title="Predicted over measured",
        axis="error of the predicted step, %",
        name="forecast-error",
        rule=0.0,
        log=False,
        first="Nearest",
        cut="farthest",
        notes=[
            "Line: against the ends of the measured range or interval. Hollow: made too late, or of ranks "
            "that share cores: counts nowhere."
        ],
    )


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
    yield line_chart(
        [
            Series(
                name=name(curve),
                style=style,
                points=[
                    Point(x=point.ranks, repeats=[100 * point.efficiency], hollow=False, about=curve)
                    for point in curve.points
                ],
            )
            for curve, style in zip(found, palette(len(found)), strict=True)
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
        title="Weak scaling, extrapolated",
        x="ranks (extrapolated)",
        y="efficiency beside one replica, %",
        name="forecast-curve",
        most=_MAX_CURVES,
        y_log=False,
        alt=f"Extrapolated efficiency over ranks up to {max(p.ranks for _, p in rows)}, {len(found)} series.",
        notes=["Extrapolated: simulated from layers and messages measured here."],
    )
