"""Section: what each hyper-parameter of a classifier does, on the axes of the published study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from transect.analysis.groups import grouped
from transect.analysis.labels import group_labels
from transect.domain.cell import Cell
from transect.report.engine.blocks import Chart, Heading, Lead, Part, digits, table, words
from transect.report.engine.charts.chart import MAX_PANELS, Point, Series, line_chart
from transect.report.engine.charts.theme import palette
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import Scale, clean, spread, tenths
from transect.report.topics.classifiers.doubt_findings import effect_text
from transect.report.topics.classifiers.doubts import verdict
from transect.report.topics.classifiers.facts import (
    ACCURACY,
    VALID,
    ClassifyGroup,
    Difference,
    Sweep,
    corpus_label,
    sweeps,
)
from transect.report.topics.classifiers.hyperparameter_findings import NOUNS, value_text
from transect.report.topics.study.published import published_of
from transect.stats.samples import Summary

_PERCENT = Scale(factor=0.01, unit="%")
_MAX_SERIES = 6
# Axes whose values are each drawn once, for all seeds.
_ONCE = ("embeddings", "split")


def hyperparameters_body(context: Context) -> Iterator[Part]:
    """Draw and list each sweep; nothing without one."""
    groups: list[ClassifyGroup] = context.of("classify")
    found = list(sweeps(groups))
    if not found:
        return
    yield Lead(
        "One hyper-parameter at a time, all else equal. The effect is against the first value, seed by seed; published "
        "values are best accuracies on validation of other tickets, so that only the shapes compare."
    )
    drawn = 0
    for (corpus, model), of_model in grouped(found, _whose).items():
        yield Heading(clean(f"{corpus}: {model}"))
        by_axis = grouped(of_model, lambda sweep: sweep.axis)
        for axis, members in by_axis.items():
            if drawn < MAX_PANELS and members[0].is_numeric:
                drawn += 1
                yield accuracy_chart(axis, members, f"hyperparameter-{drawn}")
        yield value_table(context, of_model)


def _whose(sweep: Sweep) -> tuple[str, str]:
    return corpus_label(sweep.groups[0]), sweep.cell.model


def _labels(sweeps_: Sequence[Sweep], axis: str) -> Mapping[Cell, str]:
    """Name what sweeps over one axis differ in otherwise."""
    return group_labels([sweep.groups[0] for sweep in sweeps_], always=["view"], never=[axis, "model"])


def accuracy_chart(axis: str, members: Sequence[Sweep], name: str) -> Chart:
    """Draw the accuracy over the values of one hyper-parameter, a line for each text."""
    labels = _labels(members, axis)
    ordered = sorted(members, key=lambda sweep: -len(sweep.groups))
    styles = palette(len(ordered))
    series = [
        Series(
            name=labels[sweep.cell],
            style=style,
            points=[
                Point(
                    x=float(getattr(group.cell, axis)),
                    repeats=[100 * v for v in group.values(sweep.metric)],
                    about=group,
                )
                for group in sweep.groups
            ],
        )
        for sweep, style in zip(ordered, styles, strict=True)
    ]
    rows = [(sweep, group) for sweep in ordered for group in sweep.groups]
    noun = NOUNS[axis]
    return line_chart(
        series,
        rows,
        [
            words("Text", lambda row: labels[row[0].cell]),
            digits(noun.capitalize(), lambda row: getattr(row[1].cell, axis), value_text),
            *_accuracy(),
        ],
        title=f"Accuracy by {noun}",
        x=noun,
        y="tickets told right, per cent",
        name=name,
        alt=f"Accuracy by {noun}, {len(series)} series.",
        most=_MAX_SERIES,
        y_log=False,
        notes=["Lines join medians over seeds; small dots are seeds."],
    )


def _accuracy() -> list[Any]:
    """Return the columns of the accuracy of rows of a sweep and a group of it."""

    def summary(row: tuple[Sweep, ClassifyGroup]) -> Summary | None:
        return row[1].summary(row[0].metric)

    return [
        digits("Accuracy", lambda row: s.median if (s := summary(row)) else None, tenths),
        digits("Range or interval", lambda row: spread(summary(row), _PERCENT)),
        digits("Seeds", lambda row: len(row[1].values(row[0].metric))),
        words("on", lambda row: "test" if row[0].metric == ACCURACY else "validation"),
    ]


def value_table(context: Context, found: Sequence[Sweep]) -> Part:
    """List each value with its effect and, where the study names one, the published accuracy."""
    rows = [(sweep, group) for sweep in found for group in sweep.groups]
    labels = {
        (axis, cell): label
        for axis, members in grouped(found, lambda sweep: sweep.axis).items()
        for cell, label in _labels(members, axis).items()
    }

    def effect(row: tuple[Sweep, ClassifyGroup]) -> Difference | None:
        return row[0].effects.get(getattr(row[1].cell, row[0].axis))

    def published(row: tuple[Sweep, ClassifyGroup]) -> float | None:
        return published_of(context, row[1], row[0].axis)

    return table(
        rows,
        [
            words("Hyper-parameter", lambda row: NOUNS[row[0].axis]),
            words("Text", lambda row: labels[row[0].axis, row[0].cell]),
            digits("Value", lambda row: value_text(getattr(row[1].cell, row[0].axis))),
            *_accuracy(),
            digits("Validation", lambda row: median(row[1], VALID), tenths),
            words("Effect in points", lambda row: effect_text(e) if (e := effect(row)) else None),
            words("", lambda row: verdict(e, once=row[0].axis in _ONCE) if (e := effect(row)) else None),
            digits("Published", published, tenths),
        ],
        caption="Every value of every hyper-parameter",
        fold_title="Every value of every hyper-parameter",
    )
