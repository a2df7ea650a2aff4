"""What each hyper-parameter of a classifier does, on the axes of the published study: how far it moves the accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import grouped
from transect.domain.axes.text import HYPERPARAMETERS
from transect.report.engine.blocks import Heading, Lead, Part, digits, words
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, median, names
from transect.report.engine.text import clean, count, tenths
from transect.report.topics.claims.findings import published_at
from transect.report.topics.classifiers.effects import axis_noun, change_words, confidence_of, effect_chart, effect_text
from transect.report.topics.classifiers.epochs import epoch_charts
from transect.report.topics.classifiers.facts import ACCURACY, VALID, VIEWS, Change, Difference, corpus_label, sweeps


def hyperparameter_findings(context: Context) -> list[Finding]:
    """One for each corpus, model and view whose hyper-parameters were changed one at a time."""
    found = []
    for changes in sweeps(context.of("classify")):
        known = [(change, change.effect) for change in changes if change.effect is not None]
        seeds = max((effect.summary.count for _, effect in known), default=0)
        if changes[0].axis in HYPERPARAMETERS and changes[0].metric == ACCURACY and seeds > 1:
            strongest, effect = max(known, key=lambda pair: abs(pair[1].summary.median))
            found.append((strongest, effect, len(known), seeds))
    parts = grouped(found, lambda s: (corpus_label(s[0].group), s[0].group.cell.model, s[0].group.cell.view))
    return [_finding(members) for members in parts.values()]


def _finding(members: Sequence[tuple[Change, Difference, int, int]]) -> Finding:
    """Say of each sweep its strongest change, by their effects; they come with the numbers of changes and of seeds."""
    # Of several sweeps over one hyper-parameter, the one of most seeds speaks; the section has all.
    best = [max(alike, key=lambda s: s[3]) for alike in grouped(members, lambda s: s[0].axis).values()]
    best.sort(key=lambda s: -abs(s[1].summary.median))
    listed = [f"{change_words(change, axis_noun(change.axis))} {effect_text(effect)}" for change, effect, *_ in best]
    ranges = [
        f"{axis_noun(change.axis)}: {count(amount + 1, 'value')}, {count(seeds, 'seed')}"
        for change, _, amount, seeds in best
    ]
    first = members[0][0].group
    return Finding(
        subject=corpus_label(first),
        kind="hyperparameter",
        scope=f"{VIEWS[first.cell.view]}, {first.cell.model}",
        claim=f"one hyper-parameter at a time, in points of accuracy: {names(listed, 9)}.",
        confidence=confidence_of(effect for _, effect, *_ in best),
        # Each moves most of all values of its hyper-parameter.
        tests=tuple(effect.chance(n_comparisons=amount) for _, effect, amount, _ in best),
        evidence=joined("of each hyper-parameter the value that moves it most from its first one", names(ranges, 9)),
    )


def hyperparameters_body(context: Context) -> Iterator[Part]:
    """Draw and list the changes of each classifier; nothing without one."""
    found = [change for changes in sweeps(context.of("classify")) for change in changes]
    if not found:
        return
    yield Lead(
        "One hyper-parameter at a time, all else equal. The effect is against the first value, seed by seed; published "
        "values are best accuracies on validation of other tickets, so that only the shapes compare."
    )

    def published(change: Change) -> str | None:
        figures = [published_at(context, group, change.axis) for group in change.pairs[0]]
        texts = ["–" if figure is None else tenths(figure) for figure in figures]
        return " → ".join(texts) if any(figures) else None

    more = [
        words("on", lambda change: "test" if change.metric == ACCURACY else "validation"),
        digits("Validation", lambda change: median(change.pairs[0][1], VALID), tenths),
        digits("Published", published),
    ]
    of_model = grouped(found, lambda change: (corpus_label(change.group), change.group.cell.model))
    for number, ((corpus, model), changes) in enumerate(of_model.items()):
        yield Heading(clean(f"{corpus}: {model}"))
        title = "What a hyper-parameter does."
        yield effect_chart(context, changes, title=title, name=f"hyperparameters-{number}", more=more)
        alike = [
            group for group in context.of("classify") if (corpus_label(group), group.cell.model) == (corpus, model)
        ]
        yield from epoch_charts(context, alike, f"epochs-{number}")
