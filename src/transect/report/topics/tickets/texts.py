"""What is said of tickets: where they came from, what could not be read, how long they are, how text was prepared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from transect.analysis.groups import Group
from transect.report.engine.blocks import Chip, Column, Lead, Part, Value, digits, table, words
from transect.report.engine.columns import ended
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import clean, clipped, count, number, percent, quantity, tenths
from transect.report.topics.classifiers.facts import VIEWS, corpus_name
from transect.stats.comparisons import Confidence


def ticket_findings(context: Context) -> list[Finding]:
    """What was made up for want of a file, what was rejected, over all sources, then the lengths of each source and view."""
    return [*_made_instead(context), *_unread(context), *_lengths(context)]


def _made_instead(context: Context) -> list[Finding]:
    return [
        Finding(
            subject="study",
            kind="tickets-made-up",
            confidence=Confidence.CONFIRMED,
            scope=corpus_name(context, group.cell.corpus),
            claim=f"its tickets are generated: {clean(missing)} was not there when they were made.",
            evidence=f"{count(_detail(group, 'tickets') or 0, 'generated ticket')}; what rests on them is of these, not of real ones",
        )
        for group in context.of("corpus")
        if (missing := _detail(group, "instead_of"))
    ]


def _unread(context: Context) -> list[Finding]:
    corpora = context.of("corpus")
    causes = Counter[str]()
    for group in corpora:
        causes.update(_rejected(group))
    rejected, read = sum(causes.values()), sum(_detail(group, "tickets") or 0 for group in corpora)
    if not rejected:
        return []
    listed = [f"{amount} {cause}" for cause, amount in causes.most_common() if amount]
    return [
        Finding(
            subject="study",
            kind="tickets-rejected",
            confidence=Confidence.CONFIRMED,
            claim=f"of {count(read + rejected, 'ticket')}, {rejected} could not be read.",
            evidence=f"causes: {names(listed, 9)}; each is listed in rejected.jsonl of its source's cell",
        )
    ]


def _lengths(context: Context) -> list[Finding]:
    found: dict[tuple[str, str], Finding] = {}
    for group in context.of("tokens"):
        cell, lengths, normality = group.cell, _detail(group, "lengths"), _detail(group, "normality")
        key = (cell.corpus, cell.view)
        if not lengths or not normality or key in found or cell.stop_words:
            continue
        rejected = not normality["gaussian"]
        verb = "are not Gaussian" if rejected else "may be Gaussian"
        found[key] = Finding(
            subject="study",
            kind="ticket-lengths",
            confidence=Confidence.CONFIRMED if rejected else Confidence.INCONCLUSIVE,
            scope=f"{corpus_name(context, cell.corpus)}, {VIEWS[cell.view]}",
            claim=f"lengths {verb}: the fit's 95 % bound is {number(lengths['gaussian_95'])} words, which "
            f"{percent(lengths['gaussian_95_above'], 1)} of the tickets exceed; the 95 % quantile is "
            f"{number(lengths['quantile_95'])}.",
            evidence=joined(
                f"largest distance of the distributions {number(normality['distance'])}, of which a "
                f"Gaussian sample exceeds {number(normality['critical_05'])} in 5 % of the cases",
                f"skewness {number(normality['skewness'])}",
                count(int(lengths["tickets"]), "ticket"),
            ),
        )
    return list(found.values())


_PARTS = ("train", "validation", "test", "inference", "on_device")
_MAX_CLASSES = 12


def tickets_body(context: Context) -> Iterator[Part]:
    """Tell of each source, then of each step that its text went through."""
    corpora = context.of("corpus")
    if not corpora:
        return
    read = sum(_detail(group, "tickets") or 0 for group in corpora)
    rejected = sum(sum(_rejected(group).values()) for group in corpora)
    yield Lead(
        f"{count(read, 'ticket')} read from {count(len(corpora), 'source')}, {rejected} rejected. Owners "
        "and authors are hashed with a salt that is in no result; what is marked synthetic was made up."
    )
    yield _table(
        corpora,
        ("corpus",),
        [
            digits("Tickets", _of("tickets")),
            digits("Rejected", lambda group: sum(_rejected(group).values()) if group.ok else None),
            words("because of", lambda group: _listed(_rejected(group))),
            *(
                [words("Generated for want of", lambda group: clean(_detail(group, "instead_of") or "") or None)]
                if any(_detail(group, "instead_of") for group in corpora)
                else []
            ),
            digits("Classes", lambda group: len(_detail(group, "classes") or ()) or None),
            words("The largest", _classes),
            words("Languages", lambda group: _listed(_detail(group, "languages"))),
            words("Redacted", lambda group: _listed(_detail(group, "redacted"))),
        ],
        "Sources",
    )
    sizes = [digits(part.replace("_", " ").capitalize(), _of("sizes", part)) for part in _PARTS]
    yield _table(
        context.of("split"),
        ("corpus", "split"),
        [*sizes, digits("Classes of test off by", _of("balance", "test"), tenths)],
        "Splits, in tickets; the classes' total variation distance to those of all",
    )
    text = ("corpus", "view", "names", "split", "embeddings")
    yield _table(
        context.of("embeddings"),
        text,
        [
            digits("Words", _of("words")),
            digits("Known in train", _of("covered", "train"), tenths),
            digits("Known in test", _of("covered", "test"), tenths),
            digits("Time", _of("seconds"), lambda s: quantity(s, "s")),
        ],
        "Vocabularies and vectors",
    )
    yield _table(
        context.of("encode"),
        (*text, "words"),
        [
            digits("Words read", _of("length")),
            digits("Gaussian bound", _of("gaussian")),
            digits("Quantile", _of("quantile")),
            digits("Tickets cut", _of("parts", "train", "cut"), tenths),
            digits("Unknown words of test", _of("parts", "test", "unknown"), tenths),
        ],
        "How many words are read",
    )


_TITLES = {"corpus": "Source", "words": "Length"}


def _table(groups: Sequence[Group], axes: Sequence[str], columns: Sequence[Column[Group]], caption: str) -> Part:
    """List the cells of a stage by what names them; nothing without any."""

    def named(axis: str) -> Column[Group]:
        return words(
            _TITLES.get(axis, axis.capitalize()),
            lambda group: VIEWS.get(group.cell.get(axis)) or clean(group.cell.get(axis)),
        )

    if not groups:
        return None
    return table(groups, [*map(named, axes), *columns, words("", _state)], caption=caption, fold_title=caption)


def _detail(group: Group, *keys: str) -> Any:
    value: Any = group.ok[0].details if group.ok else None
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _of(*keys: str) -> Callable[[Group], Any]:
    return lambda group: _detail(group, *keys)


def _rejected(group: Group) -> dict[str, int]:
    return _detail(group, "rejected") or {}


def _state(group: Group) -> Value:
    if not group.ok:
        return ended(group.records[0])
    return Chip("synthetic", "warn") if _detail(group, "synthetic") else None


def _classes(group: Group) -> str | None:
    """Name the largest classes of a source, with their tickets."""
    counted = zip(_detail(group, "classes") or (), _detail(group, "class_counts") or (), strict=False)
    return _listed({clipped(str(name), 40): amount for name, amount in counted})


def _listed(found: Any) -> str | None:
    if not isinstance(found, dict) or not found:
        return None
    ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    named = [f"{name} {amount}" for name, amount in ordered if amount]
    return clean(", ".join(named[:_MAX_CLASSES]) + (", …" if named[_MAX_CLASSES:] else "")) or "none"
