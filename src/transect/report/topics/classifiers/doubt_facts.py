"""The doubts about a published study, each as a controlled experiment: one thing changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transect.analysis.groups import grouped
from transect.domain.axes.text import ClassifyCell
from transect.domain.files import canonical_json
from transect.report.engine.text import clean
from transect.report.topics.classifiers.facts import VIEWS, Change, ClassifyGroup, corpus_label, difference, rule_of


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """What is changed: an axis, or with `rule` one key of what the axis's name stands for.

    `before` and `after` are the levels; none in `after`: every larger one against the smallest.
    `usual` is the level of a rule that leaves the key out. `noun` stands before the levels, `drawn` names what is drawn
    once, for all seeds, `caveat` what a difference may be due to as well.
    """

    key: str
    question: str
    axis: str
    rule: tuple[str, ...] = ()
    usual: str = ""
    before: Any = None
    after: tuple[Any, ...] = ()
    among: Callable[[ClassifyCell], bool] = lambda cell: True
    noun: str = ""
    drawn: str = ""
    caveat: str = ""

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
        drawn="set of vectors",
        caveat="vectors that are fitted to all tickets saw more text, which may help by itself",
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
        noun="batch",
        caveat="in as many updates a larger batch sees more tickets",
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
        drawn="split",
    ),
)


def cases(doubt: Doubt, groups: Iterable[ClassifyGroup]) -> list[Change]:
    """Return the changes of a doubt, one for each kind of classifier and tickets: the transformer's first."""
    found: dict[Hashable, list[tuple[Any, Any, ClassifyGroup, ClassifyGroup]]] = {}
    for pair in _pairs(doubt, groups):
        before, after, group, _ = pair
        found.setdefault((group.cell.kind, _place(doubt, group), before, after), []).append(pair)
    return sorted((_case(doubt, members) for members in found.values()), key=lambda case: _order(doubt, case))


def _place(doubt: Doubt, group: ClassifyGroup) -> str:
    """Say on which tickets: corpus, and view and names where these are not what is changed."""
    cell = group.cell
    parts = [corpus_label(group)]
    parts += [VIEWS[cell.view]] if doubt.axis != "view" else []
    parts += [f"names {cell.names}"] if doubt.axis != "names" else []
    return clean(", ".join(parts))


def _case(doubt: Doubt, members: Sequence[tuple[Any, Any, ClassifyGroup, ClassifyGroup]]) -> Change:
    pairs = [(before, after) for _, _, before, after in members]
    effects = [difference([pair]) for pair in pairs]
    amounts = [0 if effect is None else effect.summary.count for effect in effects]
    kept = [pair for pair, amount in zip(pairs, amounts, strict=True) if amount == max(amounts)]
    before, after, group, _ = members[0]
    return Change(
        axis=doubt.key,
        before=before,
        after=after,
        pairs=kept,
        effect=difference(kept),
        left_out=len(pairs) - len(kept),
        once=bool(doubt.drawn),
        place=_place(doubt, group),
    )


def _order(doubt: Doubt, case: Change) -> tuple[Any, ...]:
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
