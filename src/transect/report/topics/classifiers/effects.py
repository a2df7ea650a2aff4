"""What one change does to a classifier's accuracy: in words, as a chart, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from transect.report.engine.blocks import Chip, Column, Part, digits, table, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import clean, number, tenths
from transect.report.topics.classifiers.facts import Change, Difference
from transect.report.topics.retraining.factors import doubt_words, signed
from transect.stats.comparisons import Confidence
from transect.stats.samples import Spread


def effect_text(effect: Difference) -> str:
    """Write a difference with its ends: `−12.3 (95 % interval −14.0 to −11.1)`."""
    summary = effect.summary
    if effect.fixed:
        alone = "" if effect.alone is None else f", test tickets alone ± {signed(effect.alone)[1:]}"
        return f"{signed(summary.median)} (no seed plays a part{alone})"
    if summary.spread is Spread.SINGLE:
        return f"{signed(summary.median)} (one seed)"
    if summary.low == summary.high:
        return f"{signed(summary.median)} (in each of {summary.count} seeds)"
    word = summary.word if summary.spread is Spread.INTERVAL else f"range of {summary.count} seeds"
    doubt = "" if effect.shown else doubt_words(summary)
    return f"{signed(summary.median)} ({word} {signed(summary.low)} to {signed(summary.high)}{doubt})"


def axis_noun(axis: str) -> str:
    """Name a hyper-parameter, or a choice of text."""
    return "length" if axis == "words" else axis.replace("_", " ")


def value_text(value: Any) -> str:
    """Write a hyper-parameter's value."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number(float(value)) if is_number else clean(str(value))


def change_words(change: Change, noun: str = "") -> str:
    """Name a change: `kept → removed`, `batch 1 → 64`."""
    return f"{noun} {value_text(change.before)} → {value_text(change.after)}".strip()


def confidence_of(effects: Iterable[Difference], *, confirmable: bool = True) -> Confidence:
    """Return how sure it is what those effects say that are shown; nothing is where none is."""
    shown = [effect for effect in effects if effect.shown]
    if not shown:
        return Confidence.INCONCLUSIVE
    sure = confirmable and all(effect.confirmed for effect in shown)
    return Confidence.CONFIRMED if sure else Confidence.PROVISIONAL


def _verdict(change: Change) -> Chip:
    """Say whether a difference is shown; what is drawn once for all seeds is never confirmed."""
    effect = change.effect
    if effect is None:
        return Chip("no common seed", "warn")
    if effect.shown:
        return Chip("shown", "good" if effect.confirmed and not (change.once and not effect.fixed) else "plain")
    if effect.fixed:
        return Chip("may be the draw")
    return Chip("one seed" if effect.summary.count == 1 else "may be chance")


def _medians(change: Change, side: int) -> str | None:
    values = [value for pair in change.pairs if (value := median(pair[side], change.metric)) is not None]
    return tenths(sum(values) / len(values)) if values else None


def _alone(change: Change) -> str | None:
    return f"± {signed(change.effect.alone)[1:]}" if change.effect and change.effect.alone else None


def effect_chart(
    context: Context, every: Sequence[Change], *, title: str, name: str, more: Sequence[Column[Change]] = ()
) -> Part:
    """Draw the effect of each change, and list all; of one alone there is a table. What may be chance is hollow."""
    compared = [(change, change.effect) for change in every if change.effect is not None]
    kinds, places = {change.group.cell.kind for change in every}, {change.place for change in every}

    def said(change: Change) -> str:
        return change_words(change, axis_noun(change.axis))

    def label(change: Change) -> str:
        parts = [change.group.cell.kind if len(kinds) > 1 else "", change.place if len(places) > 1 else ""]
        return ": ".join([*filter(None, parts), said(change)])

    columns: list[Column[Any]] = [
        words("Change", said),
        words("Classifier", lambda change: clean(change.group.cell.model)),
        words("Tickets", lambda change: change.place),
        digits("Before", lambda change: _medians(change, 0)),
        digits("After", lambda change: _medians(change, 1)),
        digits("Effect in points", lambda change: effect_text(change.effect) if change.effect else None),
        digits("Test tickets alone", _alone),
        digits("Settings", lambda change: len(change.pairs)),
        *more,
        words("", _verdict),
    ]
    shown = [pair for pair in compared if pair[1].shown]
    if shown:
        most, effect = max(shown, key=lambda pair: abs(pair[1].summary.median))
        title += f" {'Most: ' if len(compared) > 1 else ''}{label(most)}, {signed(effect.summary.median)} points"
    if len(compared) < 2:
        return table(every, columns, caption=title)

    def dot(change: Change) -> Dot:
        assert change.effect is not None
        summary = change.effect.summary
        return Dot(
            label=label(change),
            value=100 * summary.median,
            low=100 * summary.low,
            high=100 * summary.high,
            style=context.styles.get(change.group.cell.kind),
            right=signed(summary.median),
            hollow=not change.effect.shown,
            ends=summary.word,
            count=summary.count,
        )

    return dot_chart(
        [change for change, _ in compared],
        dot,
        columns,
        title=title,
        axis="points of accuracy",
        name=name,
        rule=0.0,
        log=False,
        cut="last",
        others=[change for change in every if change.effect is None],
        notes=[
            f"On {min(places)}." if len(places) == 1 else "",
            "Line: the interval, or range, over seeds. Hollow: it may be chance.",
        ],
    )
