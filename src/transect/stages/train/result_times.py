"""What ranks' series of times say of a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.rank_files import RANK_SERIES

# Left out of medians, kept in the samples: caches, allocators and branch predictors settle.
WARMUP_STEPS = 5

# What a series is called as a metric and in samples.
SERIES_NAMES = {name: f"{name}_time" for name in RANK_SERIES} | {"under_way": "communication_total_time"}

Arrays = dict[str, np.ndarray]


def merged_steps(by_rank: Arrays, *, alone: bool) -> Arrays:
    """Return the series of a step: those of the slowest rank, its own split with them.

    `alone`: ranks do not step together, so rank 0, the server, tells how long a global batch takes to be
    applied; nobody's split is a part of that.
    """
    steps = np.arange(by_rank["step"].shape[1])
    slowest = np.zeros_like(steps) if alone else by_rank["step"].argmax(axis=0)
    merged = {SERIES_NAMES[name]: by_rank[name][slowest, steps] for name in RANK_SERIES}
    if alone:
        nothing = np.full(steps.shape, np.nan)
        merged = {name: times if name == "step_time" else nothing for name, times in merged.items()}
    return merged


def _steady(array: np.ndarray) -> np.ndarray:
    return array[min(WARMUP_STEPS, len(array) - 1) :]


def speed_values(batch: int, merged: Arrays) -> dict[str, float]:
    """Return the rate at a global batch, and the medians of a step and its parts."""
    median = {name: float(np.median(_steady(array))) for name, array in merged.items()}
    communication, step = _steady(merged["communication_time"]), _steady(merged["step_time"])
    return {
        "samples_per_second": batch / median["step_time"],
        **median,
        "communication_share": float(communication.sum() / step.sum()),
        "first_step_time": float(merged["step_time"][0]),
    }


def overlap_values(by_rank: Arrays, bubble: np.ndarray | float = 0.0) -> dict[str, float]:
    """Return the share of the communication of all ranks that hid behind computing.

    A stage that waits for results waits for its neighbours' computing: that is `bubble`, not this.
    """
    waited, total = (
        float(np.sum([_steady(times) for times in several]))
        for several in (by_rank["communication"] - bubble, by_rank["under_way"])
    )
    if not total > 0:
        return {}
    return {"overlap": max(0.0, 1 - waited / total)}


def input_overlap(facts: list[dict[str, Any]]) -> dict[str, float]:
    """Return the share of preparing batches that no step waited for, where ranks tell what it took."""
    inputs = [rank.get("strategy", {}).get("input") for rank in facts]
    prepared, hidden = (sum(row[name] for row in inputs if row is not None) for name in ("preparing_s", "hidden_s"))
    return {"input_overlap": hidden / prepared} if prepared > 0 else {}


def bubble_share(by_rank: Arrays) -> float:
    """Return the share of all ranks' steps in which a stage waited for its neighbours."""
    waited, steps = (sum(_steady(times).sum() for times in by_rank[n]) for n in ("bubble", "step"))
    return float(waited / steps)
