"""Up to the workload's rate and down again, once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from transect.domain.options import Option
from transect.training.schedules import SCHEDULES, Schedule


@SCHEDULES.register("one-cycle", "OneCycleLR")
class OneCycle(Schedule):
    """Half a wave of the cosine up from rate / `start_divisor` to the rate, another down to start / `end_divisor`.

    L. N. Smith and N. Topin, "Super-convergence", arXiv:1708.07120; torch's `OneCycleLR` with its defaults, but for
    the momentum, which stays.
    """

    options = {  # noqa: RUF012 a constant
        "peak": Option(default=0.3, min=0, description="the share of the steps in which the rate grows, below 1"),
        "start_divisor": Option(default=25.0, min=1, description="what the rate is divided by at first"),
        "end_divisor": Option(default=1e4, min=1, description="what that is divided by at the end"),
    }

    def complaint(self, options: Mapping[str, Any]) -> str | None:
        """A rate that never falls again is no cycle."""
        peak = float(options["peak"])
        return None if peak < 1 else f"expected a peak below 1, found {peak:g}"

    def factors(self, options: Mapping[str, Any], step: np.ndarray, steps: int) -> np.ndarray:
        """Return them: the first and the last step lie on the ends, the highest between two steps."""
        start = 1 / float(options["start_divisor"])
        end = start / float(options["end_divisor"])
        top, last = float(options["peak"]) * steps - 1, steps - 1
        up = _between(start, 1.0, step / top if top > 0 else np.ones(len(step)))
        down = _between(1.0, end, (step - top) / max(last - top, 1e-300))
        return np.where(step <= top, up, down)


def _between(first: float, last: float, share: np.ndarray) -> np.ndarray:
    """Follow half a wave from one to the other."""
    found: np.ndarray = last + (first - last) * (1 + np.cos(np.pi * share)) / 2
    return found
