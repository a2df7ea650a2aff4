"""What a gain from retraining is due to: optimiser, rate, runtime, each apart from the others."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from transect.analysis.retraining import FACTORS, Design, Effect, Levels, RetrainGroup, designs, effects
from transect.analysis.statistics import Spread, Summary
from transect.report.blocks import Chip, Heading, Part, digits, note, table, words
from transect.report.charts.chart import dot_chart
from transect.report.charts.marks import Dot
from transect.report.charts.theme import palette
from transect.report.context import Context
from transect.report.findings.retrain_factors import SCORE, absent_text, effect_words, signed
from transect.report.text import clean, count, tenths


def factor_parts(context: Context, workload: str, groups: Sequence[RetrainGroup]) -> Iterator[Part]:
    """Draw the effects of each full design, and list the score of each combination."""
    for number, design in enumerate(designs(groups, SCORE)):
        yield Heading(f"{workload}: what a gain is due to")
        found = effects(design)
        if found:
            yield effect_chart(design, found, f"factors-{workload}-{number}")
        yield combination_table(design)
        if absent := absent_text(design):
            yield note(clean(f"{absent[:1].upper()}{absent[1:]}."))


def _span(summary: Summary) -> str | None:
    if summary.spread is Spread.SINGLE:
        return None
    return f"{signed(summary.low)} to {signed(summary.high)}"


def _verdict(effect: Effect) -> Chip:
    if effect.shown:
        return Chip("shown", "good" if effect.summary.spread is Spread.INTERVAL else "plain")
    return Chip("one seed" if effect.summary.count == 1 else "contains 0")


def effect_chart(design: Design, found: Sequence[Effect], name: str) -> Part:
    """Draw a row for each effect, its interval as a line; what crosses 0 is hollow."""
    factors = list(dict.fromkeys(effect.factor for effect in found))
    styles = dict(zip(factors, palette(len(factors)), strict=True))

    def dot(effect: Effect) -> Dot:
        points = 100 * effect.summary.median
        return Dot(
            label=effect_words(effect).partition(": ")[2],
            value=points,
            low=100 * effect.summary.low,
            high=100 * effect.summary.high,
            style=styles[effect.factor],
            right=signed(effect.summary.median),
            hollow=not effect.shown,
            ends=effect.summary.word,
            count=effect.summary.count,
        )

    cell = design.cell
    return dot_chart(
        found,
        dot,
        [
            words("Change", effect_words),
            digits("Effect", lambda e: e.summary.median, signed),
            digits("Interval or range", lambda e: _span(e.summary)),
            digits("Seeds", lambda e: e.summary.count),
            words("", _verdict),
        ],
        title=f"Effect on the accuracy after {cell.steps} steps",
        name=name,
        rule=0.0,
        log=False,
        axis="points of accuracy on the test rows",
        about=str(cell.workload),
        first="First",
        notes=[
            "Each seed gives one difference, the mean over all combinations of what is not named; "
            "the symbol is the median over seeds, the line the interval or range. Hollow: it "
            "crosses 0."
        ],
    )


def combination_table(design: Design) -> Part:
    """List the score of every combination, and how many seeds lack one."""
    before = [value for group in design.groups for value in group.values("accuracy_before")]
    lacking = f"; {count(design.lacking, 'seed')} left out for want of a combination" if design.lacking else ""

    def scores(levels: Levels) -> list[float]:
        return [one[levels] for one in design.scores.values()]

    order = {factor: design.levels[factor].index for factor in FACTORS}
    kept = sorted(
        (levels for levels in design.combinations if design.scores),
        key=lambda levels: [order[name](one) for name, one in zip(FACTORS, levels, strict=True)],
    )
    base = f", from a median of {tenths(statistics.median(before))}" if before else ""
    return table(
        kept,
        [
            words("Optimiser", lambda levels: levels[0]),
            words("Rate", lambda levels: levels[1]),
            words("Runtime", lambda levels: levels[2]),
            digits("Accuracy", lambda levels: statistics.median(scores(levels)), tenths),
            digits("Lowest", lambda levels: min(scores(levels)), tenths),
            digits("Highest", lambda levels: max(scores(levels)), tenths),
            digits("Seeds", lambda levels: len(scores(levels))),
        ],
        caption=f"Accuracy after {design.cell.steps} steps{base}{lacking}",
    )
