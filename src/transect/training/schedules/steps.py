"""A rate that falls by a factor at some points of the training."""

from __future__ import annotations

from collections.abc import Mapping
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

    def factors(self, options: Mapping[str, Any], step: np.ndarray, steps: int) -> np.ndarray:
        """Return them; a milestone is the first whole step at its share or behind it."""
        shares = [int(a) / int(b or 1) if b else float(a) for a, _, b in map(_parts, options["milestones"].split())]
        passed = sum((step >= share * steps).astype(np.float64) for share in shares)
        factors: np.ndarray = float(options["factor"]) ** np.asarray(passed)
        return factors


def _parts(share: str) -> tuple[str, str, str]:
    return share.partition("/")
