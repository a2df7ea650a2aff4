"""Findings on predictions: how far off they were, and whether they knew which way is faster."""

from __future__ import annotations

from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, lowest_confidence, names
from transect.report.engine.text import count, multiplying, tenths
from transect.report.topics.forecasts.facts import Forecast, forecasts, mean_error, order_of
from transect.stats.comparisons import Confidence
from transect.stats.samples import MIN_INTERVAL_VALUES


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
                f"farthest: {counted[0].group.cell.id.split('~')[0]}, {error_words(counted[0].error)}",
                f"wrong order: {names(wrong)}" if wrong else "",
                left,
            ),
        )
    ]
