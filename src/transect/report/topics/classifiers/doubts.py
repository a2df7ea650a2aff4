"""Section: the doubts about the published study, each as a controlled experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from transect.report.engine.blocks import Chip, Column, Lead, Part, digits, table, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.theme import palette
from transect.report.engine.context import Context
from transect.report.engine.text import tenths
from transect.report.topics.classifiers.doubt_facts import DOUBTS, Case, Doubt, cases
from transect.report.topics.classifiers.doubt_findings import case_words, effect_text, where
from transect.report.topics.classifiers.facts import ACCURACY, ClassifyGroup, Difference
from transect.report.topics.retraining.factors import signed


def doubts_body(context: Context) -> Iterator[Part]:
    """Draw the effects of each doubt, and list all of them."""
    groups: list[ClassifyGroup] = context.of("classify")
    found = [(doubt, matching) for doubt in DOUBTS if (matching := cases(doubt, groups))]
    if not found:
        return
    yield Lead(
        "Each changes one thing and nothing else: the difference of the accuracy within a seed, its median "
        "and interval over seeds. The tickets and their parts are the same in all seeds."
    )
    for doubt, matching in found:
        yield effect_chart(doubt, matching)


def _medians(case: Case, side: int) -> str | None:
    values = [value for pair in case.pairs if (value := pair[side].summary(ACCURACY)) is not None]
    return tenths(sum(summary.median for summary in values) / len(values)) if values else None


def verdict(effect: Difference, *, once: bool = False) -> Chip:
    """Say whether a difference is shown; what is drawn `once` for all seeds is never confirmed."""
    if effect.shown:
        return Chip("shown", "good" if effect.confirmed and not (once and not effect.fixed) else "plain")
    if effect.fixed:
        return Chip("may be the draw")
    return Chip("one seed" if effect.summary.count == 1 else "contains 0")


def effect_chart(doubt: Doubt, every: Sequence[Case]) -> Part:
    """Draw a row for each case that has an effect; what contains 0 is hollow."""
    compared = [case for case in every if case.effect is not None]
    columns: list[Column[Any]] = [
        words("Change", lambda case: case_words(doubt, case)),
        words("Classifier", lambda case: case.group.cell.kind),
        words("Tickets", lambda case: where(doubt, case)),
        digits("Before", lambda case: _medians(case, 0)),
        digits("After", lambda case: _medians(case, 1)),
        digits("Effect in points", lambda case: effect_text(case.effect) if case.effect else None),
        digits(
            "Test tickets alone",
            lambda case: f"± {signed(case.effect.alone)[1:]}" if case.effect and case.effect.alone else None,
        ),
        digits("Settings", lambda case: len(case.pairs)),
        words(
            "", lambda case: verdict(case.effect, once=doubt.once) if case.effect else Chip("no common seed", "warn")
        ),
    ]
    if not compared:
        return table(every, columns)
    kinds = list(dict.fromkeys(case.group.cell.kind for case in compared))
    styles = dict(zip(kinds, palette(len(kinds)), strict=True))

    places = list(dict.fromkeys(where(doubt, case) for case in compared))

    def dot(case: Case) -> Dot:
        assert case.effect is not None
        summary = case.effect.summary
        parts = [case.group.cell.kind] if len(kinds) > 1 else []
        parts += [where(doubt, case)] if len(places) > 1 else []
        return Dot(
            label=": ".join([*parts, case_words(doubt, case)]),
            value=100 * summary.median,
            low=100 * summary.low,
            high=100 * summary.high,
            style=styles[case.group.cell.kind],
            right=signed(summary.median),
            hollow=not case.effect.shown,
            ends=summary.word,
            count=summary.count,
        )

    return dot_chart(
        compared,
        dot,
        columns,
        title=doubt.question,
        axis="points of accuracy on the test tickets",
        name=f"doubt-{doubt.key}",
        rule=0.0,
        log=False,
        first="First",
        cut="last",
        others=[case for case in every if case.effect is None],
        notes=[
            f"On {places[0]}." if len(places) == 1 else "",
            "Line: the interval, or range, over seeds. Hollow: it contains 0.",
        ],
    )
