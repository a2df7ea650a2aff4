"""The learning rate of each step, and what ranks and batches mean for it."""

from __future__ import annotations

import numpy as np

from transect.training.workloads import Parameters


def learning_rates(parameters: Parameters, rule: str, batch: int, steps: int) -> np.ndarray:
    """Return the learning rate of each step, float64 (steps,).

    `none`: the workload's own, whatever the global `batch`. `linear`: multiplied by
    batch / parameters.batch, reached from the workload's own in `parameters.warmup_steps` equal
    parts (P. Goyal et al., "Accurate, large minibatch SGD", arXiv:1706.02677, section 2).
    """
    base = parameters.learning_rate
    if rule == "none":
        return np.full(steps, base)
    target = base * batch / parameters.batch
    grown = np.full(steps, target)
    warm = min(parameters.warmup_steps, steps)
    # The first step has the workload's own rate, the one after the warm-up the scaled one.
    grown[:warm] = base + (target - base) * np.arange(warm) / max(1, warm)
    return grown
