"""Findings on tickets: what could not be read, and whether their lengths are Gaussian."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from transect.analysis.groups import Group
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import count, number, percent
from transect.report.topics.classifiers.inputs import VIEWS, corpus_name
from transect.stats.comparisons import Confidence


def lengths_of(group: Group[Any]) -> Mapping[str, Any] | None:
    """Return what a tokens cell says of its lengths, or None."""
    found = group.ok[0].details.get("lengths") if group.ok else None
    return found if isinstance(found, dict) and found.get("histogram") else None


def not_gaussian(group: Group[Any]) -> bool | None:
    """Whether a test rejects that the lengths are Gaussian; None where none was made."""
    found = group.ok[0].details.get("normality") if group.ok else None
    gaussian = found.get("gaussian") if isinstance(found, dict) else None
    return None if gaussian is None else not gaussian


def ticket_findings(context: Context) -> list[Finding]:
    """What was rejected, over all sources, then the lengths of each source and view."""
    return [*_rejected(context), *_lengths(context)]


def _rejected(context: Context) -> list[Finding]:
    causes: Counter[str] = Counter()
    read = 0
    for group in context.of("corpus"):
        details = group.ok[0].details if group.ok else {}
        found, amount = details.get("rejected"), details.get("tickets")
        causes.update(found if isinstance(found, dict) else {})
        read += amount if isinstance(amount, int) else 0
    rejected = sum(causes.values())
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
        cell, lengths, rejected = group.cell, lengths_of(group), not_gaussian(group)
        key = (cell.corpus, cell.view)
        if lengths is None or rejected is None or key in found or cell.stop_words:
            continue
        normality = group.ok[0].details["normality"]
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
