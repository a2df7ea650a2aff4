"""Writes a made-up study of classifiers of tickets: SYNTHETIC records. No number was measured."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from make_records import HOSTILE, make_record, provenance, write_records

from transect.domain.axes.text import ClassifyCell, CorpusCell, EmbeddingsCell, EncodeCell, SplitCell, TokensCell
from transect.domain.record import Cause, Record, Status

PARTITIONS = {"random": {"by": "random"}, "time": {"by": "time"}}
VECTORS = {"train": {"fit_on": "train", "width": 8}, "all": {"fit_on": "all", "width": 8}}
MODELS = {
    "transformer": {"kind": "transformer", "options": {"width": 8}},
    "published": {"kind": "transformer", "options": {"width": 8, "reshape": "published"}},
    "tfidf": {"kind": "tfidf", "options": {}},
    "majority": {"kind": "majority", "options": {}},
}
USUAL = {"epochs": 4, "batch": 16, "learning_rate": 0.001, "heads": 2, "layers": 1}
CLASSES = ["a", "b", "</td><script>window.HACKED=3</script>"]


def classify_record(
    accuracy: float = 0.8,
    repeat: int = 0,
    *,
    model: str = "transformer",
    synthetic: bool = True,
    bayes: float | None = None,
    valid: float | None = None,
    tickets: int = 2000,
    details: dict[str, Any] | None = None,
    fields: dict[str, Any] | None = None,
    **axes: Any,
) -> Record:
    """Make one run of a classifier."""
    kind = MODELS[model]["kind"]
    hyperparameters = USUAL if kind == "transformer" else {}
    given = {"corpus": "dialogues", "split": "random", "embeddings": "train", "words": "quantile"}
    cell = ClassifyCell(model=model, kind=kind, repeat=repeat, **{**given, **hyperparameters, **axes})
    right = round(tickets * accuracy)
    facts = {
        "classes": CLASSES,
        "tickets": {"train": 3 * tickets, "test": tickets},
        "majority": 0.4,
        "synthetic": synthetic,
        "bayes_accuracy": bayes,
        "parameters": 1000,
        "confusion": [[right, tickets - right, 0], [3, 5, 0], [0, 1, 2]],
        "calibration": [
            {"low": 0.0, "high": 0.5, "tickets": 100, "confidence": 0.4, "accuracy": 0.3},
            {"low": 0.5, "high": 1.0, "tickets": tickets - 100, "confidence": 0.9, "accuracy": accuracy},
        ],
        "answers": [
            {"threshold": 0.0, "answered": 1.0, "accuracy": accuracy},
            {"threshold": 0.5, "answered": 0.7, "accuracy": min(1.0, accuracy + 0.1)},
            {"threshold": 0.99, "answered": 0.0, "accuracy": None},
        ],
        "at_k": {"1": accuracy, "2": min(1.0, accuracy + 0.1), "3": 1.0},
    }
    rules = {
        "corpus": {"synthetic": synthetic},
        "split": PARTITIONS[cell.split],
        "embeddings": VECTORS[cell.embeddings],
        "words": {"rule": "quantile"},
        "model": MODELS[model],
    }
    return make_record(
        cell,
        {"accuracy": accuracy} | ({} if valid is None else {"validation_accuracy": valid}),
        details=facts | (details or {}),
        **{"parameters": rules, "provenance": provenance("torch"), **(fields or {})},
    )


def seeds(accuracy: float, amount: int = 6, spread: float = 0.0004, **given: Any) -> list[Record]:
    """Make runs whose seeds shift every setting alike, and each a little of its own."""
    common, single = random.Random(3), random.Random(repr(sorted(given.items())))
    return [
        classify_record(
            accuracy + common.uniform(-4 * spread, 4 * spread) + single.uniform(-spread, spread), repeat, **given
        )
        for repeat in range(amount)
    ]


def effects(amount: int = 6, **changed: float) -> list[Record]:
    """Make the runs of every doubt; `changed` replaces the accuracy of a level, by its name."""
    at = {
        "kept": 0.8,
        "pseudonyms": 0.79,
        "removed": 0.5,
        "first": 0.4,
        "all": 0.802,
        "published": 0.7,
        "right": 0.8,
        "time": 0.6,
        "batch_1": 0.5,
        "batch_64": 0.7,
        **changed,
    }
    kept = {"names": "kept", "bayes": 0.9}
    return [
        *seeds(at["right"], amount, **kept),
        *seeds(at["pseudonyms"], amount, bayes=0.88),
        *seeds(at["removed"], amount, names="removed", bayes=0.6),
        *seeds(at["first"], amount, view="first", **kept),
        *seeds(at["all"], amount, embeddings="all", **kept),
        *seeds(at["published"], amount, model="published", **kept),
        *seeds(at["time"], amount, split="time", **kept),
        *seeds(at["batch_1"], amount, batch=1, epochs=None, updates=200, **kept),
        *seeds(at["batch_64"], amount, batch=64, epochs=None, updates=200, **kept),
    ]


def text_records() -> list[Record]:
    """Make the records of the stages before classifiers."""
    lengths = {
        "tickets": 1240,
        "mean": 23.0,
        "deviation": 25.0,
        "gaussian_95": 64.1,
        "quantile_95": 81,
        "gaussian_95_above": 0.08,
    }
    normality = {"distance": 0.2, "critical_05": 0.03, "gaussian": False, "skewness": 2.1, "excess_kurtosis": 8.0}
    rule = {"corpus": "dialogues"}
    corpus = {
        "tickets": 1240,
        "rejected": {"no-text": 3, "broken-json": 1},
        "classes": CLASSES,
        "class_counts": [600, 400, 240],
        "synthetic": True,
        "languages": {"en": 900, "de": 340},
        "redacted": {"names": 1300, "emails": 4},
    }
    parts = {"sizes": {"train": 600, "test": 400}, "balance": {"train": 0.01, "test": 0.02}}
    coded = {"length": 81, "parts": {"test": {"unknown": 0.04}, "train": {"cut": 0.06}}}
    text = rule | {"split": "random", "embeddings": "train"}
    made = [
        (CorpusCell(**rule), corpus),
        (CorpusCell(corpus="real"), corpus | {"synthetic": False, "rejected": {}, "classes": [HOSTILE]}),
        (TokensCell(**rule, names="kept"), {"lengths": lengths, "normality": normality}),
        (TokensCell(**rule, names="kept", view="first"), {"lengths": lengths | {"mean": 9.0}, "normality": normality}),
        (SplitCell(**rule, split="random"), parts),
        (SplitCell(**rule, split="time"), parts | {"balance": {"test": 0.3}}),
        (
            EmbeddingsCell(**text, names="kept"),
            {"tickets": 600, "words": 3000, "covered": {"train": 1.0, "test": 0.95}},
        ),
        (
            EmbeddingsCell(**text | {"embeddings": "all"}, names="kept"),
            {"tickets": 840, "words": 3900, "covered": {"train": 1.0, "test": 1.0}},
        ),
        (EncodeCell(**text, words="quantile", names="kept"), coded),
        (
            EncodeCell(**text | {"embeddings": "all"}, words="quantile", names="kept"),
            coded | {"parts": {"test": {"unknown": 0.0}}},
        ),
    ]
    return [make_record(cell, {}, details=details) for cell, details in made]


def write_ticket_study(root: Path) -> Path:
    """Write `root/tickets`: texts, classifiers, sweeps, doubts, failures."""
    study = root / "tickets"
    lost = {"status": Status.FAILED, "cause": Cause.TIMEOUT, "message": "ended " + HOSTILE}
    records = [
        *text_records(),
        *effects(),
        *seeds(0.84, model="tfidf", names="kept", bayes=0.9),
        *seeds(0.4, model="majority", names="kept", bayes=0.9),
        *(
            run
            for heads in (1, 4)
            for view in ("conversation", "first")
            for run in seeds(0.75, names="kept", heads=heads, view=view)
        ),
        classify_record(names="kept", heads=8, fields=lost),
    ]
    return write_records(study, *records)
