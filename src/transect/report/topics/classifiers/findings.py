"""Findings on classifiers of tickets: does the transformer beat the baselines, and how near is the best possible."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.groups import grouped
from transect.report.engine.columns import ranked
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, median, names
from transect.report.engine.text import clean, count, tenths
from transect.report.topics.classifiers.effects import confidence_of, effect_text
from transect.report.topics.classifiers.facts import (
    ACCURACY,
    VALID,
    VIEWS,
    ClassifyGroup,
    Difference,
    corpus_label,
    difference,
    noun_of,
    selected,
    texts,
)
from transect.report.topics.retraining.factors import signed
from transect.stats.samples import Spread

TRANSFORMER = "transformer"


def text_label(group: ClassifyGroup) -> str:
    """Name the tickets that a group reads, and how they were prepared."""
    cell = group.cell
    parts = [VIEWS[cell.view], f"names {cell.names}", f"split {cell.split}"]
    parts += [f"embeddings {cell.embeddings}", f"length {cell.words}"]
    parts += ["with stop words"] if cell.stop_words else []
    return clean(", ".join(parts))


def best_of_kinds(groups: Sequence[ClassifyGroup]) -> list[ClassifyGroup]:
    """Return of each kind of classifier the group that validation chooses, the best on test first."""
    chosen = (selected(members) for members in grouped(groups, lambda group: group.cell.kind).values())
    return ranked((group for group in chosen if group is not None), ACCURACY)


def classifier_findings(context: Context) -> list[Finding]:
    """One for each text that several kinds of classifier read."""
    found = ((classifiers, best_of_kinds(classifiers)) for classifiers in texts(context.of("classify")))
    return [_finding(classifiers, best) for classifiers, best in found if len(best) > 1]


def _finding(classifiers: Sequence[ClassifyGroup], best_first: Sequence[ClassifyGroup]) -> Finding:
    transformers = [group for group in best_first if group.cell.kind == TRANSFORMER]
    first = transformers[0] if transformers else _preferred(best_first)
    rival = _preferred([group for group in best_first if group is not first])
    others = [group for group in best_first if group not in (first, rival)]
    settings = sum(group.cell.kind == first.cell.kind for group in classifiers)
    effect = difference([(rival, first)])
    best = first.detail("bayes_accuracy")
    bound = f" The best that anybody can reach on these made-up tickets is {tenths(best)}." if best else ""
    return Finding(
        subject=corpus_label(first),
        kind="classifier-best",
        scope=text_label(first),
        claim=f"{_claim(first, rival, effect)}{bound}",
        # One run a side is no measurement of it, whatever draws nothing.
        confidence=confidence_of(
            [effect] if effect else [], confirmable=bool(effect and effect.summary.spread is Spread.INTERVAL)
        ),
        tests=() if effect is None else (effect.chance(n_comparisons=len(best_first) / 2),),
        evidence=joined(
            f"others: {names([f'{noun_of(group)} {_accuracy(group)}' for group in others], 9)}" if others else "",
            f"of {settings} settings of {noun_of(first)}, validation chose {first.cell.id}" if settings > 1 else "",
            f"another draw of test tickets alone may move it by {signed(effect.alone)[1:]} points"
            if effect is not None and effect.alone is not None
            else "",
            count(effect.summary.count, "seed") if effect is not None else "no seed is common to both",
        ),
    )


def _preferred(best_first: Sequence[ClassifyGroup]) -> ClassifyGroup:
    """Return the one that validation would choose; without validation tickets the best on test."""
    chosen = selected(best_first) if all(group.values(VALID) for group in best_first) else None
    return chosen or best_first[0]


def _accuracy(group: ClassifyGroup) -> str:
    return tenths(median(group, ACCURACY) or 0.0)


def _claim(first: ClassifyGroup, rival: ClassifyGroup, effect: Difference | None) -> str:
    reached = (
        f"{noun_of(first)} tells {_accuracy(first)} of the test tickets right, {noun_of(rival)} {_accuracy(rival)}"
    )
    if effect is None:
        return f"{reached}; which is better is not known."
    verb = "wins" if effect.summary.median > 0 else "loses"
    if not effect.shown:
        return f"{reached}: which is better cannot be told, {effect_text(effect)} points."
    return f"{reached}: it {verb}, {effect_text(effect)} points."
