"""A rate that falls by a factor at some points of the training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from transect.domain.options import Option
from transect.training.schedules import SCHEDULES, Schedule


@SCHEDULES.register("steps", "MultiStepLR")
class Steps(Schedule):
    """factor^k in a step with k milestones behind it.

    Milestones are shares of the training, not numbers of steps: those depend on the batch, which ranks may change.
    A residual network's 30, 60 and 80 of 90 epochs are "1/3 2/3 8/9".
    """

    options = {  # noqa: RUF012 a constant
        "milestones": Option(
            default="1/3 2/3 8/9",
            pattern=r"(?:0?\.\d+|[1-9]\d*/[1-9]\d*)(?: (?:0?\.\d+|[1-9]\d*/[1-9]\d*))*",
            example="0.5 0.75",
            description="shares of the steps behind which the rate falls, as decimals or fractions",
        ),
        "factor": Option(default=0.1, min=0, description="what the rate is multiplied by at each"),
    }

    def complaint(self, options: Mapping[str, Any]) -> str | None:
        """A milestone at the end or behind it would do nothing."""
        late = [share for share in options["milestones"].split() if Fraction(share) >= 1]
        return f"expected milestones below 1, found {', '.join(late)}" if late else None

    def factors(self, options: Mapping[str, Any], step: np.ndarray, steps: int) -> np.ndarray:
        """Return them; a milestone is the first whole step at its share or behind it."""
        # Not in floating point: 0.07 of 100 steps is more than 7 there.
        milestones = [math.ceil(Fraction(share) * steps) for share in options["milestones"].split()]
        passed = sum((step >= milestone).astype(np.float64) for milestone in milestones)
        factors: np.ndarray = float(options["factor"]) ** np.asarray(passed)
        return factors
