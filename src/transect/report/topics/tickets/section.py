"""Section: where tickets came from, what could not be read of them, and how their text was prepared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from transect.analysis.groups import Group
from transect.report.engine.blocks import Chip, Column, Lead, Part, Value, digits, table, words
from transect.report.engine.columns import ended
from transect.report.engine.context import Context
from transect.report.engine.text import clean, clipped, count, number, one_decimal, quantity, tenths
from transect.report.topics.classifiers.inputs import VIEWS
from transect.report.topics.tickets.lengths import length_parts

_PARTS = ("train", "validation", "test", "inference", "on_device")
_MAX_CLASSES = 12


def tickets_body(context: Context) -> Iterator[Part]:
    """Tell of each source, then of each step that its text went through."""
    corpora = context.of("corpus")
    if not corpora:
        return
    read = sum(_amount(group, "tickets") for group in corpora)
    rejected = sum(sum(_rejected(group).values()) for group in corpora)
    yield Lead(
        f"{count(read, 'ticket')} read from {count(len(corpora), 'source')}, {rejected} rejected. Owners "
        "and authors are hashed with a salt that is in no result; what is marked synthetic was made up."
    )
    yield source_table(corpora)
    yield class_table(corpora)
    yield from length_parts(context)
    yield split_table(context.of("split"))
    yield vector_table(context.of("embeddings"))
    yield encode_table(context.of("encode"))


def _size(part: str, group: Group[Any]) -> Any:
    return _detail(group, "sizes", part)


def _detail(group: Group[Any], *keys: str) -> Any:
    value: Any = group.ok[0].details if group.ok else None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _amount(group: Group[Any], *keys: str) -> int:
    value = _detail(group, *keys)
    return value if isinstance(value, int) else 0


def _share(group: Group[Any], *keys: str) -> float | None:
    value = _detail(group, *keys)
    return float(value) if isinstance(value, int | float) else None


def _rejected(group: Group[Any]) -> dict[str, int]:
    found = _detail(group, "rejected")
    return found if isinstance(found, dict) else {}


def _state(group: Group[Any]) -> Value:
    if not group.ok:
        record = group.records[0]
        return ended(record)
    return Chip("synthetic", "warn") if _detail(group, "synthetic") else None


def _listed(found: Any) -> str | None:
    if not isinstance(found, dict) or not found:
        return None
    ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    return clean(", ".join(f"{name} {amount}" for name, amount in ordered if amount)) or "none"


def source_table(corpora: Sequence[Group[Any]]) -> Part:
    """List the sources."""
    return table(
        corpora,
        [
            words("Source", lambda group: clean(group.cell.corpus)),
            words("", _state),
            digits("Tickets", lambda group: _detail(group, "tickets")),
            digits("Rejected", lambda group: sum(_rejected(group).values()) if group.ok else None),
            words("because of", lambda group: _listed(_rejected(group))),
            digits("Classes", lambda group: len(_detail(group, "classes") or ()) or None),
            words("Languages", lambda group: _listed(_detail(group, "languages"))),
            words("Redacted", lambda group: _listed(_detail(group, "redacted"))),
        ],
        caption="Sources",
    )


def class_table(corpora: Sequence[Group[Any]]) -> Part:
    """List the largest classes of each source."""
    rows = []
    for group in corpora:
        named = zip(_detail(group, "classes") or (), _detail(group, "class_counts") or (), strict=False)
        ordered = sorted(named, key=lambda pair: (-pair[1], str(pair[0])))
        total = sum(amount for _, amount in ordered)
        rows += [(group, str(name), amount, total) for name, amount in ordered[:_MAX_CLASSES]]
    if not rows:
        return None
    return table(
        rows,
        [
            words("Source", lambda row: clean(row[0].cell.corpus)),
            words("Class", lambda row: clipped(row[1], 40)),
            digits("Tickets", lambda row: row[2]),
            digits("Share", lambda row: row[2] / row[3], tenths),
        ],
        folded=f"Classes of each source, the {_MAX_CLASSES} largest",
    )


def split_table(groups: Sequence[Group[Any]]) -> Part:
    """List parts and how far their classes are from those of all tickets."""
    if not groups:
        return None

    def far(group: Group[Any]) -> str | None:
        value = _share(group, "balance", "test")
        return None if value is None else tenths(value)

    sizes: list[Column[Any]] = [digits(part.replace("_", " ").capitalize(), partial(_size, part)) for part in _PARTS]
    return table(
        groups,
        [
            words("Source", lambda group: clean(group.cell.corpus)),
            words("Split", lambda group: clean(group.cell.split)),
            *sizes,
            words("Classes of test off by", far),
            words("", _failed),
        ],
        caption="Splits, in tickets; the classes' total variation distance to those of all",
        fold_title="Splits",
    )


def _failed(group: Group[Any]) -> Value:
    return None if group.ok else _state(group)


def _text_columns() -> list[Column[Any]]:
    """Return what names a text, and the vocabulary of it."""
    columns: list[Column[Any]] = [
        words("Source", lambda group: clean(group.cell.corpus)),
        words("View", lambda group: VIEWS[group.cell.view]),
        words("Names", lambda group: group.cell.names),
        words("Split", lambda group: clean(group.cell.split)),
        words("Embeddings", lambda group: clean(group.cell.embeddings)),
    ]
    return columns


def vector_table(groups: Sequence[Group[Any]]) -> Part:
    """List vocabularies and which share of each part's words they know."""
    if not groups:
        return None
    return table(
        groups,
        [
            *_text_columns(),
            digits("Words", lambda group: _detail(group, "words")),
            digits("Known in train", lambda group: _share(group, "covered", "train"), tenths),
            digits("Known in test", lambda group: _share(group, "covered", "test"), tenths),
            digits("Time", lambda group: _share(group, "seconds"), lambda s: quantity(s, "s")),
            words("", _failed),
        ],
        caption="Vocabularies and vectors",
        fold_title="Vocabularies and vectors",
    )


def encode_table(groups: Sequence[Group[Any]]) -> Part:
    """List how many words are read, beside both bounds, and how many tickets are cut by it."""
    if not groups:
        return None
    return table(
        groups,
        [
            *_text_columns(),
            words("Length", lambda group: clean(group.cell.words)),
            digits("Words read", lambda group: _detail(group, "length")),
            digits("Gaussian bound", lambda group: _share(group, "gaussian"), number),
            digits("Quantile", lambda group: _share(group, "quantile"), number),
            digits("Tickets cut", lambda group: _share(group, "parts", "train", "cut"), one_decimal),
            digits("Unknown words of test", lambda group: _share(group, "parts", "test", "unknown"), tenths),
            words("", _failed),
        ],
        folded="How many words are read",
    )
