"""Which classifiers of tickets are compared, and the effect of a single change."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtr

from transect.analysis.groups import Group, grouped
from transect.analysis.labels import group_labels
from transect.domain.axes.text import ClassifyCell
from transect.report.engine.context import Context
from transect.report.engine.text import clean
from transect.stats.estimates import shows_shift
from transect.stats.samples import Spread, Summary, summarise
from transect.stats.verdicts import Chance, chance_of_shift

ClassifyGroup = Group[ClassifyCell]

VIEWS = {"conversation": "whole conversation", "first": "first question"}
NOUNS = {
    "majority": "the largest class for all",
    "tfidf": "TF-IDF with logistic regression",
    "mean-vectors": "a mean of word vectors",
    "n-grams": "a bag of n-grams",
    "transformer": "the transformer",
}

ACCURACY, VALID = "accuracy", "validation_accuracy"
# What says which encoded tickets a classifier reads.
TEXT = ("corpus", "view", "names", "stop_words", "split", "embeddings", "words")
# What a sweep may run over: hyper-parameters in the order of the published study, then choices of text.
AXES = (
    "learning_rate",
    "batch",
    "heads",
    "layers",
    "epochs",
    "updates",
    "optimiser",
    "embeddings",
    "split",
    "words",
    "stop_words",
)
# Axes whose values are each drawn once, for all seeds.
_ONCE = ("embeddings", "split")
# The 97.5 % point of the normal distribution.
_Z = 1.959963985
# Names of texts that others are compared with.
_FIRST = ("train", "random", "quantile")


def rule_of(group: Group[Any], axis: str) -> Mapping[str, Any]:
    """Return the study's definition of the name that a cell has on an axis; empty if there is none."""
    rule = group.records[0].parameters.get(axis) if group.records else None
    return rule if isinstance(rule, dict) else {}


def is_synthetic(group: ClassifyGroup) -> bool:
    """Whether its tickets were made up."""
    return bool(rule_of(group, "corpus").get("synthetic"))


def corpus_label(group: ClassifyGroup) -> str:
    """Name its corpus; made-up tickets are called so wherever they appear."""
    return f"{group.cell.corpus} (synthetic)" if is_synthetic(group) else group.cell.corpus


def corpus_name(context: Context, name: str) -> str:
    """Name a corpus by its own record; made-up tickets are called so wherever they appear."""
    for group in context.of("corpus"):
        if group.cell.corpus == name and group.ok and group.ok[0].details.get("synthetic"):
            return clean(f"{name} (synthetic)")
    return clean(name)


def noun_of(group: Group[ClassifyCell]) -> str:
    """Name its kind of classifier in a sentence."""
    return NOUNS.get(group.cell.kind, group.cell.kind)


def texts(groups: Iterable[ClassifyGroup]) -> list[list[ClassifyGroup]]:
    """Part groups by the tickets that they read: those read by most kinds of classifier first."""
    parts = grouped(groups, lambda group: tuple(getattr(group.cell, axis) for axis in TEXT))
    return sorted(parts.values(), key=lambda part: (-len({g.cell.kind for g in part}), -len(part), part[0].cell.id))


def cut_short(group: ClassifyGroup) -> int:
    """Count the runs whose last epoch was the best on validation: more epochs might have done more."""
    runs = 0
    for record in group.ok:
        history = record.details.get("history") or []
        losses = [epoch.get("validation_loss") for epoch in history if isinstance(epoch, dict)]
        known = [loss for loss in losses if isinstance(loss, int | float)]
        runs += len(known) > 1 and known[-1] == min(known)
    return runs


def test_tickets(group: ClassifyGroup) -> int | None:
    """Return how many tickets tested it, or None."""
    for record in group.ok:
        sizes = record.details.get("tickets")
        amount = sizes.get("test") if isinstance(sizes, dict) else None
        if isinstance(amount, int) and amount > 0:
            return amount
    return None


def selected(groups: Sequence[ClassifyGroup]) -> ClassifyGroup | None:
    """Return the group that validation would choose; the test part has no say in it.

    Groups without an accuracy are no choice. Where a group has no score on validation, the one with
    most runs is taken, then the first by id.
    """
    known = [group for group in groups if group.values(ACCURACY)]
    scores = {group.cell: group.summary(VALID) for group in known}
    if all(scores.values()):
        medians = {cell: score.median for cell, score in scores.items() if score is not None}
        return min(known, key=lambda group: (-medians[group.cell], group.cell.id), default=None)
    return min(known, key=lambda group: (-len(group.ok), group.cell.id), default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """By how much the accuracy differs, in shares of one, paired by repeat: both had one seed.

    `summary` is over the repeats; `alone` is by how much the draw of the test tickets alone may move it (95 %, as if
    the two were tested on tickets of their own; None where their number is not told). `lacking` counts repeats that one
    side does not have. `fixed`: no seed plays a part on either side. `values` are those of the repeats.
    """

    summary: Summary
    alone: float | None
    lacking: int = 0
    fixed: bool = False
    values: tuple[float, ...] = ()

    @property
    def shown(self) -> bool:
        """Whether the repeats show it; where no seed plays a part, whether it exceeds what the draw of test tickets may do."""
        return self._exceeds if self.fixed else shows_shift(self.values)

    @property
    def confirmed(self) -> bool:
        """Whether six repeats show it, and it exceeds what the draw of test tickets may do."""
        enough = self.fixed or self.summary.spread is Spread.INTERVAL
        return self.shown and enough and self._exceeds and not self.lacking

    def chance(self, n_comparisons: float = 1.0) -> Chance:
        """Test that it is around 0, whatever the seeds and the draw of test tickets do: the larger p of both.

        `n_comparisons`: of how many it was chosen, as in `transect.stats.verdicts.corrected`.
        """
        seeds = None if self.fixed else chance_of_shift(self.values)
        p = [seeds.p] if seeds is not None else []
        if self.alone:
            p.append(2 * float(ndtr(-_Z * abs(self.summary.median) / self.alone)))
        return Chance(p=max(p, default=1.0), n_comparisons=n_comparisons, claimed=self.shown)

    @property
    def _exceeds(self) -> bool:
        return self.alone is not None and abs(self.summary.median) > self.alone


def difference(pairs: Sequence[tuple[ClassifyGroup, ClassifyGroup]], name: str = ACCURACY) -> Difference | None:
    """Return the mean difference, second less first, over all pairs, repeat by repeat.

    None where no repeat has all of them. The one run of a classifier without hyper-parameters, which draws
    nothing, stands for all repeats.
    """
    fixed = all(is_fixed(group) for pair in pairs for group in pair)
    drawn = [set(group.by_repeat(name)) for pair in pairs for group in pair if fixed or not is_fixed(group)]
    repeats = set.union(*drawn) if drawn else set()
    sides = [(_scores(first, name, repeats), _scores(second, name, repeats)) for first, second in pairs]
    whole = sorted(r for r in repeats if all(r in first and r in second for first, second in sides))
    values = tuple(statistics.fmean(second[repeat] - first[repeat] for first, second in sides) for repeat in whole)
    summary = summarise(values)
    if summary is None:
        return None
    return Difference(
        summary=summary,
        alone=_alone(pairs) if name == ACCURACY else None,
        lacking=len(repeats) - len(whole),
        fixed=fixed,
        values=values,
    )


def is_fixed(group: ClassifyGroup) -> bool:
    """Whether one run is enough: a classifier without hyper-parameters is fitted in one go, whatever the seed."""
    return not group.cell.hyperparameters() and len(group.records) == 1


def _scores(group: ClassifyGroup, name: str, repeats: set[int]) -> dict[int, float]:
    values = group.by_repeat(name)
    return dict.fromkeys(repeats, *values.values()) if values and is_fixed(group) else values


def _alone(pairs: Sequence[tuple[ClassifyGroup, ClassifyGroup]]) -> float | None:
    """Return the half-width of the 95 % interval that the number of test tickets gives, the widest."""
    widest = 0.0
    for sides in pairs:
        variance = 0.0
        for group in sides:
            amount, values = test_tickets(group), group.values(ACCURACY)
            if amount is None or not values:
                return None
            share = min(max(statistics.median(values), 0.0), 1.0)
            variance += share * (1 - share) / amount
        widest = max(widest, _Z * math.sqrt(variance))
    return widest


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing that is changed, and the pairs of groups before and after it that differ in nothing else.

    What pairs differ in between each other is averaged over. Pairs of fewer repeats than the others are not among them:
    `left_out` counts these. `effect` is None where no repeat has all. `once`: what is changed is drawn once, for all
    seeds, so that their interval knows nothing of another draw of it. `place` says on which tickets, `metric` whether
    on those of the test or, where a split has none, of validation.
    """

    axis: str
    before: Any
    after: Any
    pairs: Sequence[tuple[ClassifyGroup, ClassifyGroup]]
    effect: Difference | None
    left_out: int = 0
    once: bool = False
    place: str = ""
    metric: str = ACCURACY

    @property
    def group(self) -> ClassifyGroup:
        """The group before the change, of the first pair."""
        return self.pairs[0][0]


def sweeps(groups: Iterable[ClassifyGroup]) -> Iterator[list[Change]]:
    """Yield the changes of each set of groups that differ in one of `AXES` alone: of its first value into each other."""
    members = [group for group in groups if group.values(ACCURACY) or group.values(VALID)]
    for axis in AXES:
        # Epochs stand in the place of updates: the other one is no value of its own.
        having = [group for group in members if getattr(group.cell, axis) is not None]
        parts = grouped(having, lambda group, axis=axis: group.cell.apart_from(axis))  # type: ignore[misc]
        alike = [several for several in parts.values() if len(several) > 1]
        labels = group_labels((group for several in alike for group in several), ["view"], [axis, "model"])
        for several in alike:
            metric = ACCURACY if all(group.values(ACCURACY) for group in several) else VALID
            known = [(getattr(group.cell, axis), group) for group in several if group.values(metric)]
            if len(known) < 2:
                continue
            (first, base), *others = sorted(known, key=lambda pair: _order(pair[0]))
            yield [
                Change(
                    axis=axis,
                    before=first,
                    after=value,
                    pairs=[(base, group)],
                    effect=difference([(base, group)], metric),
                    once=axis in _ONCE,
                    place=labels[base.cell],
                    metric=metric,
                )
                for value, group in others
            ]


def _order(value: Any) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return (0, float(value), "")
    return (1, float(value not in _FIRST), str(value))
