"""The doubts about a published study, each as a controlled experiment: one thing changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from transect.analysis.groups import grouped
from transect.domain.axes.text import ClassifyCell
from transect.domain.files import canonical_json
from transect.report.topics.classifiers.facts import ClassifyGroup, Difference, difference, rule_of


def _any(cell: ClassifyCell) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """What is changed: an axis, or with `rule` one key of what the axis's name stands for.

    `before` and `after` are the levels; none in `after`: every larger one against the smallest.
    `usual` is the level of a rule that leaves the key out. `once`: what is changed is drawn once, for
    all seeds, so that their interval knows nothing of another draw of it.
    """

    key: str
    question: str
    axis: str
    rule: tuple[str, ...] = ()
    usual: str = ""
    before: Any = None
    after: tuple[Any, ...] = ()
    among: Callable[[ClassifyCell], bool] = field(default=_any)
    once: bool = False

    def level(self, group: ClassifyGroup) -> Any:
        """Return where a group stands."""
        if not self.rule:
            return getattr(group.cell, self.axis)
        value: Any = rule_of(group, self.axis)
        for key in self.rule:
            value = value.get(key, self.usual) if isinstance(value, dict) else self.usual
        return value

    def shared(self, group: ClassifyGroup) -> Hashable:
        """Return what two groups must have in common."""
        cell = group.cell.apart_from(self.axis)
        if not self.rule:
            return cell
        return cell, canonical_json(_without(dict(rule_of(group, self.axis)), self.rule))


def _without(rule: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return a rule without one key of it, however deep; a part that is left empty goes as well."""
    first, *rest = keys
    inside = rule.get(first)
    left = {key: value for key, value in rule.items() if key != first}
    if rest and isinstance(inside, dict) and (kept := _without(inside, rest)):
        left[first] = kept
    return left


DOUBTS = (
    Doubt(
        key="names",
        question="How much of the accuracy is names of people?",
        axis="names",
        before="kept",
        after=("pseudonyms", "removed"),
    ),
    Doubt(
        key="view",
        question="What does the first question tell of what the whole conversation tells?",
        axis="view",
        before="conversation",
        after=("first",),
    ),
    Doubt(
        key="embeddings",
        question="What do word vectors gain that were fitted to the test tickets too?",
        axis="embeddings",
        rule=("fit_on",),
        usual="train",
        before="train",
        after=("all",),
        once=True,
    ),
    Doubt(
        key="heads",
        question="Do several heads help if their outputs are joined right?",
        axis="model",
        rule=("options", "reshape"),
        usual="right",
        before="published",
        after=("right",),
        among=lambda cell: (cell.heads or 1) > 1,
    ),
    Doubt(
        key="batch",
        question="Does a batch of one learn more than a larger one, at equal updates?",
        axis="batch",
        among=lambda cell: cell.updates is not None,
    ),
    Doubt(
        key="split",
        question="What does a split by time leave of the accuracy of a random one?",
        axis="split",
        rule=("by",),
        usual="random",
        before="random",
        after=("time",),
        once=True,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One change of a doubt in one corpus, view and kind of classifier.

    `pairs` differ in nothing else; what they differ in between each other is averaged over. Pairs of fewer repeats than
    the others are not among them: `left_out` counts these. `effect` is None where no repeat has all.
    """

    before: Any
    after: Any
    pairs: Sequence[tuple[ClassifyGroup, ClassifyGroup]]
    left_out: int
    effect: Difference | None

    @property
    def group(self) -> ClassifyGroup:
        """The group before the change, of the first pair."""
        return self.pairs[0][0]


def cases(doubt: Doubt, groups: Iterable[ClassifyGroup]) -> list[Case]:
    """Return the cases of a doubt: those of the transformer first, then those of most pairs."""
    found: dict[Hashable, list[tuple[Any, Any, ClassifyGroup, ClassifyGroup]]] = {}
    for pair in _pairs(doubt, groups):
        before, after, group, _ = pair
        cell = group.cell
        view = "" if doubt.axis == "view" else cell.view
        names = "" if doubt.axis == "names" else cell.names
        found.setdefault((cell.kind, cell.corpus, view, names, before, after), []).append(pair)
    made = [_case(members) for members in found.values()]
    return sorted(made, key=lambda case: _order(doubt, case))


def _case(members: Sequence[tuple[Any, Any, ClassifyGroup, ClassifyGroup]]) -> Case:
    pairs = [(before, after) for _, _, before, after in members]
    effects = [difference([pair]) for pair in pairs]
    amounts = [0 if effect is None else effect.summary.count for effect in effects]
    kept = [pair for pair, amount in zip(pairs, amounts, strict=True) if amount == max(amounts)]
    before, after, *_ = members[0]
    return Case(before=before, after=after, pairs=kept, left_out=len(pairs) - len(kept), effect=difference(kept))


def _order(doubt: Doubt, case: Case) -> tuple[Any, ...]:
    cell = case.group.cell
    place = doubt.after.index(case.after) if case.after in doubt.after else case.after
    return (cell.kind != "transformer", cell.kind, cell.corpus, cell.view, cell.names, place)


def _pairs(doubt: Doubt, groups: Iterable[ClassifyGroup]) -> Iterator[tuple[Any, Any, ClassifyGroup, ClassifyGroup]]:
    """Yield level before, level after and their groups, which share all the rest."""
    for alike in grouped((g for g in groups if doubt.among(g.cell)), doubt.shared).values():
        by_level = {doubt.level(group): group for group in alike}
        before = doubt.before
        if not doubt.after and None not in by_level:
            before = min(by_level)
        if before not in by_level:
            continue
        others = doubt.after or sorted(level for level in by_level if level != before)
        for after in others:
            if after in by_level:
                yield before, after, by_level[before], by_level[after]
