"""Section: classifiers of the same tickets side by side, and what the best one is good for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import grouped
from transect.report.engine.blocks import Chip, Column, Heading, Lead, Part, digits, table, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.columns import medians, metric_columns
from transect.report.engine.context import Context
from transect.report.engine.finding import median, names
from transect.report.engine.text import Scale, clean, in_unit, number, tenths
from transect.report.topics.classifiers.best import best_parts
from transect.report.topics.classifiers.effects import axis_noun, effect_text
from transect.report.topics.classifiers.facts import (
    ACCURACY,
    ClassifyGroup,
    Difference,
    corpus_label,
    difference,
    noun_of,
    texts,
)
from transect.report.topics.classifiers.findings import best_of_kinds, text_label

# Texts that have a chart of their own; all are in a table.
_MAX_TEXTS = 6


def classifiers_body(context: Context) -> Iterator[Part]:
    """Compare kinds on each text that several read, then look closely at the best of each corpus."""
    groups: list[ClassifyGroup] = context.of("classify")
    if not groups:
        return
    yield Lead(
        "Of each kind of classifier the setting that validation chose; accuracy on test tickets, median over "
        "seeds. The upright mark is the best that anybody can reach, known where tickets were made up."
    )
    shared = [members for members in texts(groups) if len({group.cell.kind for group in members}) > 1]
    for number_, members in enumerate(shared[:_MAX_TEXTS]):
        yield Heading(f"{clean(corpus_label(members[0]))}: {text_label(members[0])}")
        yield kind_chart(context, best_of_kinds(members), f"classifiers-{number_}")
    if shared[_MAX_TEXTS:]:
        further = [group for members in shared[_MAX_TEXTS:] for group in best_of_kinds(members)]
        yield table(further, _columns(further), folded="The same on more texts")
    for members in grouped(groups, corpus_label).values():
        first = next(iter(texts(members)), [])
        for best in best_of_kinds(first)[:1]:
            yield from best_parts(context, best)


def kind_chart(context: Context, ranked: Sequence[ClassifyGroup], name: str) -> Part:
    """Draw the accuracy of each kind, the best first, with the share of the largest class as a rule; None of one alone."""
    if len(ranked) < 2:
        return None
    first, *others = ranked
    # By the seeds that both have the first one may be behind.
    ahead = [difference([(other, first)]) for other in others]
    rivals = [g for g, by in zip(others, ahead, strict=True) if by is None or not by.shown or by.summary.median < 0]
    title = f"{noun_of(first)} tells most tickets right, {tenths(median(first, ACCURACY) or 0.0)}"
    if rivals:
        title = f"Which of {names([*map(noun_of, (first, *rivals))], 9)} tells most tickets right is not known"
    largest = next((value for group in ranked if (value := group.detail("majority")) is not None), None)

    def dot(group: ClassifyGroup) -> Dot:
        summary = group.summary(ACCURACY)
        assert summary is not None
        best = group.detail("bayes_accuracy")
        return Dot(
            label=clean(f"{group.cell.model}: {noun_of(group)}"),
            value=100 * summary.median,
            low=100 * summary.low,
            high=100 * summary.high,
            points=[100 * value for value in group.values(ACCURACY)],
            style=context.styles.get(group.cell.kind),
            right=tenths(summary.median),
            bound=None if best is None else 100 * best,
        )

    return dot_chart(
        ranked,
        dot,
        _columns(ranked),
        title=f"{title[:1].upper()}{title[1:]}",
        name=name,
        axis="test tickets told right, per cent",
        log=False,
        rule=None if largest is None else 100 * largest,
        notes=[
            "Line: the interval, or range, over seeds.",
            "" if largest is None else "Dashed: the share of the largest class among the test tickets.",
        ],
    )


def _settings(group: ClassifyGroup) -> str:
    values = group.cell.hyperparameters()
    return clean(", ".join(f"{axis_noun(name)} {value}" for name, value in values.items())) or "–"


def _untrained(group: ClassifyGroup) -> int | None:
    """Count the classes that no training ticket has: none of their tickets can be told right."""
    unseen = group.ok[0].details.get("unseen_classes") if group.ok else None
    return len(unseen) if unseen else None


def _columns(groups: Sequence[ClassifyGroup]) -> list[Column[ClassifyGroup]]:
    percentages = Scale(factor=0.01, unit="%")
    several = len({text_label(group) for group in groups}) > 1
    of_text: list[Column[ClassifyGroup]] = (
        [words("Tickets", lambda g: f"{corpus_label(g)}, {text_label(g)}")] if several else []
    )
    first = {(g.cell.corpus, text_label(g)): g for g in reversed(groups)}

    def behind(group: ClassifyGroup) -> Difference | None:
        best = first[group.cell.corpus, text_label(group)]
        return None if best is group else difference([(best, group)])

    columns: list[Column[ClassifyGroup]] = [
        *of_text,
        words("Classifier", lambda group: clean(group.cell.model)),
        words("Setting", _settings),
        *metric_columns(ACCURACY, percentages, "Accuracy"),
        medians("Among 3 likeliest", "accuracy_at_3", tenths),
        medians("Macro F1", "macro_f1", number),
        medians("Calibration error", "calibration_error", tenths),
        medians("Log loss", "log_loss", number),
        *([digits("Classes without training tickets", _untrained)] if any(map(_untrained, groups)) else []),
        digits("Parameters", lambda group: group.detail("parameters"), number),
        medians("Training", "train_time", in_unit("s")),
        words("Against the first, in points", lambda g: effect_text(e) if (e := behind(g)) else None),
        words("", lambda group: Chip("synthetic", "warn") if "(synthetic)" in corpus_label(group) else None),
    ]
    return columns
