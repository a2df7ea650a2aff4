"""Half a wave of the cosine, from the workload's rate down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from transect.domain.options import Option
from transect.training.schedules import SCHEDULES, Schedule


@SCHEDULES.register("cosine", "CosineAnnealingLR")
class Cosine(Schedule):
    """end + (1 - end) (1 + cos(pi t / T)) / 2 in step t of T.

    I. Loshchilov and F. Hutter, "SGDR", arXiv:1608.03983, equation 5, without restarts; torch's
    `CosineAnnealingLR` with T_max = T, taken in every step.
    """

    options = {  # noqa: RUF012 a constant
        "end": Option(default=0.0, min=0, description="what it falls to behind the last step, as a share of the rate")
    }

    def factors(self, options: Mapping[str, Any], step: np.ndarray, steps: int) -> np.ndarray:
        """Return them; the last step lies just above the end."""
        end = float(options["end"])
        return end + (1 - end) * (1 + np.cos(np.pi * step / max(1, steps))) / 2
