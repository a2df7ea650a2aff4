"""Axes of a training cell, for tests of cells and of records."""

from __future__ import annotations

TRAIN = {"stage": "train", "workload": "w", "framework": "f", "strategy": "s", "batch": 16}
