"""What the cells say from which a classifier took its tickets."""

from __future__ import annotations

from typing import Any

from transect.analysis.groups import Group
from transect.report.engine.context import Context
from transect.report.engine.text import clean
from transect.report.topics.classifiers.facts import TEXT

VIEWS = {"conversation": "whole conversation", "first": "first question"}
# What kinds of classifiers are called in a sentence.
NOUNS = {
    "majority": "the largest class for all",
    "tfidf": "TF-IDF with logistic regression",
    "mean-vectors": "a mean of word vectors",
    "n-grams": "a bag of n-grams",
    "transformer": "the transformer",
}


def corpus_name(context: Context, name: str) -> str:
    """Name a corpus; made-up tickets are called so wherever they appear."""
    for group in context.of("corpus"):
        if group.cell.corpus == name and group.ok and group.ok[0].details.get("synthetic"):
            return clean(f"{name} (synthetic)")
    return clean(name)


def input_of(context: Context, stage: str, group: Group[Any]) -> Group[Any] | None:
    """Return the group of an earlier stage that shares the text's axes which it has, or None."""
    for candidate in context.of(stage):
        kind = type(candidate.cell).model_fields
        axes = [axis for axis in TEXT if axis in kind]
        if all(candidate.cell.get(axis) == group.cell.get(axis) for axis in axes):
            return candidate
    return None


def number_of(context: Context, stage: str, group: Group[Any], *keys: str) -> float | None:
    """Return a number from the details of what a group took from a stage, or None."""
    found = input_of(context, stage, group)
    value: Any = found.ok[0].details if found is not None and found.ok else None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None
