"""A study of tickets as text: what its planning is tested with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import factories

HEAD = """
name: made
tickets:
  corpora: {one: {format: synthetic}, two: {format: synthetic}}
  splits:
    plain: {train: 0.6, validation: 0.2, test: 0.2}
    without: {train: 0.8, test: 0.2}
  embeddings: {small: {width: 12}, large: {width: 16}}
classify:
  repeats: 1
  models:
    encoder: {kind: transformer, options: {epochs: 4, heads: 2}}
    patient: {kind: transformer, options: {patience: 2}}
    counted: {kind: transformer, options: {updates: 6}}
    pairs: {kind: n-grams}
    words: {kind: tfidf}
"""
TEXT = "corpora: [one], splits: [plain], embeddings: [small]"


def plan_study(folder: Path, tail: str) -> Any:
    """Plan the study `HEAD` with what follows it."""
    return factories.plan_study(folder, HEAD + tail)


def plan_grids(folder: Path, *grids: str, text: str = TEXT) -> Any:
    """Plan grids of classifiers, each on the same tickets."""
    listed = "".join(f"    - {{{text}, {grid}}}\n" for grid in grids)
    return plan_study(folder, f"  grids:\n{listed}")


def plan_search(folder: Path, rule: str, more: str = "") -> Any:
    """Plan one search named `hyperparameters`; what `rule` does not say is as in `TEXT`."""
    usual = {"corpora": "[one]", "split": "plain", "embeddings": "small", "model": "encoder"}
    text = ", ".join(f"{key}: {value}" for key, value in usual.items() if f"{key}: " not in rule)
    return plan_study(folder, f"search:\n  searches:\n    hyperparameters: {{{text}, {rule}}}\n{more}")
