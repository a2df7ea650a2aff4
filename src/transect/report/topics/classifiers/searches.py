"""Section: searches for the hyper-parameters of classifiers, rung by rung."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from transect.analysis.groups import Group, grouped
from transect.domain.axes.text import SearchCell
from transect.report.engine.blocks import Heading, Lead, Part, digits, table, words
from transect.report.engine.columns import ended
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import clean, tenths
from transect.report.topics.classifiers.effects import axis_noun, value_text
from transect.report.topics.classifiers.facts import corpus_name


def searches_body(context: Context) -> Iterator[Part]:
    """List the places of each search, the last rung first."""
    groups: list[Group[SearchCell]] = context.of("search")
    if not groups:
        return
    yield Lead(
        "Successive halving: many points for few epochs, and of these those with the best accuracy on "
        "validation for more, each going on from where it stopped."
    )
    for (corpus, search), members in grouped(groups, lambda g: (g.cell.corpus, g.cell.search)).items():
        yield Heading(clean(f"{corpus_name(context, corpus)}: {search}"))
        yield place_table(members)


def _first(group: Group[SearchCell], key: str) -> Any:
    return group.ok[0].details.get(key) if group.ok else None


def _point(group: Group[SearchCell]) -> str | None:
    found = _first(group, "point")
    if not isinstance(found, dict):
        return None
    given = ((axis_noun(name), value) for name, value in found.items() if value is not None)
    return clean(", ".join(f"{name} {value_text(value)}" for name, value in given))


def _from(group: Group[SearchCell]) -> str | None:
    """Name the cell of the rung before by its place there."""
    found = _first(group, "from")
    if not isinstance(found, str):
        return None
    # Corpus and search come first, and may be called like a place.
    places = [word for word in found.split("~")[0].split(".") if word.startswith("place")]
    return places[-1] if places else found


def place_table(groups: Sequence[Group[SearchCell]]) -> Part:
    """List the places of one search."""
    return table(
        sorted(groups, key=lambda group: (-group.cell.rung, group.cell.place)),
        [
            digits("Rung", lambda group: group.cell.rung),
            digits("Place", lambda group: group.cell.place),
            words("from", _from),
            words("Point", _point),
            digits("Epochs", lambda group: len(_first(group, "history") or ()) or None),
            digits("Validation", lambda group: median(group, "validation_accuracy"), tenths),
            digits("Test", lambda group: median(group, "accuracy"), tenths),
            words("", lambda group: None if group.ok else ended(group.records[0])),
        ],
        caption="Places of all rungs",
    )
