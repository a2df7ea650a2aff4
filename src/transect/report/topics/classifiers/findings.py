"""Findings on classifiers of tickets: does the transformer beat the baselines, and how near is the best possible."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.groups import grouped
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import clean, count, tenths
from transect.report.topics.classifiers.doubt_findings import effect_text
from transect.report.topics.classifiers.facts import (
    ACCURACY,
    VALID,
    ClassifyGroup,
    Difference,
    corpus_label,
    difference,
    selected,
    texts,
)
from transect.report.topics.classifiers.inputs import NOUNS, VIEWS
from transect.report.topics.retraining.factors import signed
from transect.stats.comparisons import Confidence
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
    chosen = [selected(members) for members in grouped(groups, lambda group: group.cell.kind).values()]
    known = [
        (summary.median, group)
        for group in chosen
        if group is not None and (summary := group.summary(ACCURACY)) is not None
    ]
    return [group for _, group in sorted(known, key=lambda pair: (-pair[0], pair[1].cell.id))]


def classifier_findings(context: Context) -> list[Finding]:
    """One for each text that several kinds of classifier read."""
    found = []
    for classifiers in texts(context.of("classify")):
        ranked = best_of_kinds(classifiers)
        if len(ranked) > 1:
            found.append(_finding(classifiers, ranked))
    return found


def _noun(group: ClassifyGroup) -> str:
    return NOUNS.get(group.cell.kind, group.cell.kind)


def _accuracy(group: ClassifyGroup) -> str:
    summary = group.summary(ACCURACY)
    return "–" if summary is None else tenths(summary.median)


def _finding(classifiers: Sequence[ClassifyGroup], ranked: Sequence[ClassifyGroup]) -> Finding:
    transformers = [group for group in ranked if group.cell.kind == TRANSFORMER]
    first = transformers[0] if transformers else _preferred(ranked)
    rival = _preferred([group for group in ranked if group is not first])
    others = [group for group in ranked if group not in (first, rival)]
    effect = difference([(rival, first)])
    best = first.detail("bayes_accuracy")
    bound = f" The best that anybody can reach on these made-up tickets is {tenths(best)}." if best else ""
    return Finding(
        subject=corpus_label(first),
        kind="classifier-best",
        scope=text_label(first),
        claim=f"{_claim(first, rival, effect)}{bound}",
        confidence=_confidence(effect),
        tests=() if effect is None else (effect.chance(n_comparisons=len(ranked) / 2),),
        evidence=joined(
            f"others: {names([f'{_noun(group)} {_accuracy(group)}' for group in others], 9)}" if others else "",
            f"of {count(_amount(classifiers, first), 'setting')} of {_noun(first)}, validation chose {first.cell.id}"
            if _amount(classifiers, first) > 1
            else "",
            f"another draw of test tickets alone may move it by {signed(effect.alone)[1:]} points"
            if effect is not None and effect.alone is not None
            else "",
            count(effect.summary.count, "seed") if effect is not None else "no seed is common to both",
        ),
    )


def _preferred(ranked: Sequence[ClassifyGroup]) -> ClassifyGroup:
    """Return the one that validation would choose; without validation tickets the best on test."""
    chosen = selected(ranked) if all(group.values(VALID) for group in ranked) else None
    return chosen or ranked[0]


def _amount(classifiers: Sequence[ClassifyGroup], first: ClassifyGroup) -> int:
    return sum(group.cell.kind == first.cell.kind for group in classifiers)


def _claim(first: ClassifyGroup, rival: ClassifyGroup, effect: Difference | None) -> str:
    noun, rival_noun = _noun(first), _noun(rival)
    reached = f"{noun} tells {_accuracy(first)} of the test tickets right, {rival_noun} {_accuracy(rival)}"
    if effect is None:
        return f"{reached}; which is better is not known."
    verb = "wins" if effect.summary.median > 0 else "loses"
    if not effect.shown:
        return f"{reached}: which is better cannot be told, {effect_text(effect)} points."
    return f"{reached}: it {verb}, {effect_text(effect)} points."


def _confidence(effect: Difference | None) -> Confidence:
    if effect is None or not effect.shown:
        return Confidence.INCONCLUSIVE
    whole = effect.confirmed and effect.summary.spread is Spread.INTERVAL
    return Confidence.CONFIRMED if whole else Confidence.PROVISIONAL
