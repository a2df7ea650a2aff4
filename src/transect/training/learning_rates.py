"""The learning rate of each step: the workload's own, what ranks and batches mean for it, and its schedule."""

from __future__ import annotations

import numpy as np

from transect.training.schedules import schedule_factors
from transect.training.workloads import Parameters


def learning_rates(parameters: Parameters, rule: str, batch: int, steps: int) -> np.ndarray:
    """Return the learning rate of each step of a whole training, float64 (steps,).

    It is the product of two factors. The first comes from `rule`. `none`: the workload's own rate,
    whatever the global `batch`. `linear`: multiplied by batch / parameters.batch, reached from the
    workload's own in `parameters.warmup_steps` equal parts (P. Goyal et al., "Accurate, large
    minibatch SGD", arXiv:1706.02677, section 2). The second is that of `parameters.schedule`, whose own
    `warmup_steps` begin near 0.
    """
    rates: np.ndarray = _scaled(parameters, rule, batch, steps) * schedule_factors(parameters.schedule, steps)
    return rates


def _scaled(parameters: Parameters, rule: str, batch: int, steps: int) -> np.ndarray:
    base = parameters.learning_rate
    if rule == "none":
        return np.full(steps, base)
    target = base * batch / parameters.batch
    grown = np.full(steps, target)
    warm = min(parameters.warmup_steps, steps)
    # The first step has the workload's own rate, the one after the warm-up the scaled one.
    grown[:warm] = base + (target - base) * np.arange(warm) / max(1, warm)
    return grown
