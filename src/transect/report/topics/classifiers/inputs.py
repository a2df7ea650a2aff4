"""What the cells say from which a classifier took its tickets."""

from __future__ import annotations

from transect.report.engine.context import Context
from transect.report.engine.text import clean

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
