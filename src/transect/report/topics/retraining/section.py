"""Section: base models that runtimes go on training, held to PyTorch's float64 path."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from transect.report.engine.blocks import Chip, Column, Heading, Lead, Part, Value, digits, note, table, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.theme import palette
from transect.report.engine.columns import ended, labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns
from transect.report.engine.finding import median
from transect.report.engine.text import clean, count, in_unit, percent, tenths
from transect.report.topics.retraining.factors import SCORE, absent_text, effect_words, signed
from transect.report.topics.retraining.facts import (
    FACTORS,
    STEP_TIME,
    Design,
    Effect,
    Levels,
    RetrainGroup,
    designs,
    effects,
    is_relay,
    points,
    sorted_by_time,
)
from transect.report.topics.retraining.findings import path_text
from transect.report.topics.retraining.relay import relay_parts
from transect.stats.samples import Spread, Summary


def retraining_body(context: Context) -> Iterator[Part]:
    """Tell of each workload who trains how fast and whether right, then relays and factors."""
    groups: list[RetrainGroup] = context.of("retrain")
    if not groups:
        return
    yield Lead(
        f"{path_text(groups)} A step is gathering the rows, binding, running and reading the loss; "
        "times of a run whose path is wrong are not kept."
    )
    for workload in context.workloads("retrain"):
        of_workload: list[RetrainGroup] = context.of("retrain", workload)
        first, *others = points(of_workload) or [[]]
        if first:
            yield Heading(f"{workload}: who trains")
            yield runtime_table(context, first)
        further = [group for members in others for group in members]
        if further:
            yield other_table(context, further)
        yield from relay_parts(context, workload, [group for group in of_workload if is_relay(group)])
        yield from factor_parts(context, workload, of_workload)


def _path(group: RetrainGroup) -> Value:
    """Return whether the loss path is PyTorch's, and by what share of the tolerance it is off."""
    if group.wrong:
        return Chip("diverged" if group.diverged else "wrong result", "bad")
    shares = [
        max(pair) for pair in zip(group.values("equality_ratio"), group.values("weights_equality_ratio"), strict=False)
    ]
    if not shares:
        return None
    blind = "" if group.check_inconclusive_from is None else f", cannot tell from step {group.check_inconclusive_from}"
    return f"{percent(max(shares), 1)} of the tolerance{blind}"


def _state(group: RetrainGroup) -> Value:
    """Return why a group has no number, as its first record says."""
    if group.ok:
        return Chip("disturbed", "warn") if group.disturbed else None
    record = group.records[0]
    return ended(record)


def _columns(context: Context, groups: Sequence[RetrainGroup]) -> list[Column[RetrainGroup]]:
    pairs = {id(pair.group): pair for pair in context.contrasts.of("retraining.speed")}
    return [
        labelled(groups, "Runtime"),
        medians("Step", STEP_TIME, in_unit("s")),
        *contrast_columns("Times PyTorch's", lambda group: pairs.get(id(group))),
        medians("Samples/s", "samples_per_second"),
        medians("First step", "first_step_time", in_unit("s")),
        medians("Session", "session_time", in_unit("s")),
        medians("Checkpoint", "checkpoint_time", in_unit("s")),
        medians("Peak memory", "peak_memory", in_unit("B")),
        words("Loss path and weights", _path),
        medians("Last loss", "final_loss"),
        medians("Accuracy", "accuracy", tenths),
        digits("Runs", lambda group: len(group.ok)),
        words("", _state),
    ]


def runtime_table(context: Context, groups: Sequence[RetrainGroup]) -> Part:
    """List every runtime of one point, the shortest step first, those without a time last."""
    timed = sorted_by_time(groups)
    untimed = [group for group in groups if group not in timed]
    cell = groups[0].cell
    before = median(next((group for group in groups if group.ok), groups[0]), "accuracy_before")
    score = "" if before is None else f", from an accuracy of {tenths(before)}"
    caption = f"{cell.workload}, {cell.optimiser}, {cell.rate} rate, batch {cell.batch}, {cell.steps} steps{score}"
    return table([*timed, *untimed], _columns(context, groups), caption=caption)


def other_table(context: Context, groups: Sequence[RetrainGroup]) -> Part:
    """List what was computed at other points, behind a title."""
    return table(groups, _columns(context, groups), folded=f"{len(groups)} more retrainings")


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
        return [by_levels[levels] for by_levels in design.scores.values()]

    order = {factor: design.levels[factor].index for factor in FACTORS}
    kept = sorted(
        (levels for levels in design.combinations if design.scores),
        key=lambda levels: [order[name](level) for name, level in zip(FACTORS, levels, strict=True)],
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
