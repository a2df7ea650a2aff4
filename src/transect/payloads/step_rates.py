"""The learning rate of each step of a retraining."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def retraining_rates(own: float, rule: Mapping[str, Any], steps: int) -> np.ndarray:
    """Return float64 (steps,): `own` is the workload's rate, `rule` the fields of a RateRule.

    A warm-up of w steps has the rates 1/w, 2/w, … of the full one. What follows stays, or goes to
    `end` along half a period of a cosine (I. Loshchilov and F. Hutter, "SGDR", arXiv:1608.03983,
    equation 5, without restarts).
    """
    warm = round(rule["warmup"] * steps)
    factors = np.full(steps, float(rule["factor"]))
    factors[:warm] *= np.arange(1, warm + 1) / max(1, warm)
    if rule["end"] is not None:
        done = np.arange(steps - warm) / max(1, steps - warm - 1)
        span = rule["factor"] - rule["end"]
        factors[warm:] = rule["end"] + span * (1 + np.cos(np.pi * done)) / 2
    return own * factors
