"""Section: searches for the hyper-parameters of classifiers, rung by rung."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import Group, grouped
from transect.domain.axes.text import SearchCell
from transect.report.engine.blocks import Heading, Lead, Part, Value, digits, table, words
from transect.report.engine.columns import ended
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import clean, number, tenths
from transect.report.topics.classifiers.inputs import corpus_name


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


def _point(group: Group[SearchCell]) -> str | None:
    found = group.ok[0].details.get("point") if group.ok else None
    if not isinstance(found, dict):
        return None
    values = (
        f"{name.replace('_', ' ')} {number(value) if isinstance(value, float) else value}"
        for name, value in found.items()
        if value is not None
    )
    return clean(", ".join(values))


def _from(group: Group[SearchCell]) -> str | None:
    """Name the cell of the rung before by its place there."""
    found = group.ok[0].details.get("from") if group.ok else None
    if not isinstance(found, str):
        return None
    # Corpus and search come first, and may be called like a place.
    places = [word for word in found.split("~")[0].split(".") if word.startswith("place")]
    return places[-1] if places else found


def _state(group: Group[SearchCell]) -> Value:
    if group.ok:
        return None
    record = group.records[0]
    return ended(record)


def place_table(groups: Sequence[Group[SearchCell]]) -> Part:
    """List the places of one search."""
    ordered = sorted(groups, key=lambda group: (-group.cell.rung, group.cell.place))

    def epochs(group: Group[SearchCell]) -> int | None:
        history = group.ok[0].details.get("history") if group.ok else None
        return len(history) if history else None

    return table(
        ordered,
        [
            digits("Rung", lambda group: group.cell.rung),
            digits("Place", lambda group: group.cell.place),
            words("from", _from),
            words("Point", _point),
            digits("Epochs", epochs),
            digits("Validation", lambda group: median(group, "validation_accuracy"), tenths),
            digits("Test", lambda group: median(group, "accuracy"), tenths),
            words("", _state),
        ],
        fold_title="Places of all rungs",
    )
